import { checkRelaySettings } from '../../src/config/relay-checks.js'
import { relaySettings } from '../../src/config/settings.js'
import { deadlineAfter, earlier } from '../../src/core/deadline.js'
import { relayPass } from '../../src/core/relay-pass.js'
import { compileRoutes } from '../../src/core/route.js'
import { systemClock, systemRandom } from '../../src/data-api/system-clock.js'
import { accountIn } from '../../src/publishers/account.js'
import { createHandler } from '../handler.js'
import { createPublishers, type PublishersOfPass } from './publishers.js'

/** Between the last request's start and the end of the invocation: its timeout, and this much for settling. */
const SETTLE_MS = 5_000

/** Kept for the life of the process. */
let publishersOfPass: PublishersOfPass | undefined

/** One relay pass. Scheduled every minute; passes overlap, and any number may run at once. */
export const handler = createHandler({
  name: 'relay',
  settings: relaySettings,
  check: checkRelaySettings,
  schema: 'checked',
  async run({ settings, store, telemetry, requestId, functionArn, deadline: hardDeadline }) {
    const { destinations, routes, defaultDestination, passSeconds, requestTimeoutMs } = settings
    const { maxAttempts, retryBaseMs: baseMs, retryCapMs: capMs } = settings
    const budget = deadlineAfter(systemClock, passSeconds * 1000)
    const latest = deadlineAfter(systemClock, hardDeadline.remainingMs() - requestTimeoutMs - SETTLE_MS)
    publishersOfPass ??= createPublishers(settings)
    const totals = await relayPass({
      store,
      route: compileRoutes({ destinations, routes, defaultDestination }),
      publishers: await publishersOfPass(telemetry, accountIn(functionArn)),
      settings: { ...settings, policy: { maxAttempts, baseMs, capMs } },
      clock: systemClock,
      random: systemRandom,
      telemetry,
      owner: requestId,
      deadline: earlier(budget, latest),
      hardDeadline,
    })
    telemetry.metric('PassCompleted', 1)
    telemetry.log('relay-pass-completed', { ...totals })
    return totals
  },
})
