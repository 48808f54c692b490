import type { Mutant } from './mutant.js'
import { mutantsOfCircuits } from './of-circuits.js'
import { mutantsOfCrashes } from './of-crashes.js'
import { mutantsOfLeases } from './of-leases.js'
import { mutantsOfPublishing } from './of-publishing.js'
import { mutantsOfTheQueue } from './of-the-queue.js'

/** Every break that must not go unnoticed. */
export const mutants: readonly Mutant[] = [
  ...mutantsOfPublishing,
  ...mutantsOfLeases,
  ...mutantsOfTheQueue,
  ...mutantsOfCircuits,
  ...mutantsOfCrashes,
]
