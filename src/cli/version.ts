import { ownManifest } from './manifest.js'

/** The package's version. */
export const packageVersion = (): string => ownManifest().version ?? 'unknown'
