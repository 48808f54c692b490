import { afterAll } from 'vitest'
import { removeAssemblies } from './synthesis.js'

// vitest runs this for every file; synthesis.ts is loaded once for many
afterAll(removeAssemblies)
