import type { Clock } from '../../src/core/clock.js'
import { deadlineAfter, earlier, type Deadline } from '../../src/core/deadline.js'
import { SqlError } from '../../src/core/errors.js'

/** What was just made is known everywhere within seconds; this is generous. */
const UNTIL_KNOWN_MS = 60_000
const PAUSE_MS = 2_000

const refusals: ReadonlySet<string> = new Set([
  // of a role
  'AccessDeniedException',
  'AccessDenied',
  'ForbiddenException',
  // of a cluster and its database
  'HttpEndpointNotEnabledException',
  'DatabaseNotFoundException',
])

/**
 * Does `work` again, for a minute at most, as long as AWS refuses it for want of rights, or does not know the cluster's Data
 * API: CloudFormation calls the migration right after it has made its role, and maybe the cluster, which are known to every
 * service a little later. `work` must be repeatable.
 */
export async function untilNewResourcesAreKnown<Value>(
  work: () => Promise<Value>,
  { clock, deadline }: { readonly clock: Clock; readonly deadline: Deadline },
): Promise<Value> {
  const patience = earlier(deadlineAfter(clock, UNTIL_KNOWN_MS), deadline)
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isRefusal(error) || patience.remainingMs() <= PAUSE_MS) throw error
      await clock.sleep(PAUSE_MS)
    }
  }
}

/** Not the database's own refusal (SQLSTATE 42501), which no waiting heals. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const name = error instanceof SqlError ? error.errorName : error.name
  // the Data API says by the text alone that the caller may not read the secret
  return refusals.has(name) || /is not authorized to perform/.test(error.message) || isRefusal(error.cause)
}
