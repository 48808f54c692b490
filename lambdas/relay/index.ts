import { checkRelaySettings } from '../../src/config/relay-checks.js'
import { relaySettings } from '../../src/config/settings.js'
import type { Destinations } from '../../src/core/destination.js'
import { deadlineAfter, earlier } from '../../src/core/deadline.js'
import type { Publisher } from '../../src/core/ports.js'
import { relayPass } from '../../src/core/relay-pass.js'
import { compileRoutes } from '../../src/core/route.js'
import { systemClock, systemRandom } from '../../src/data-api/system-clock.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { createHandler } from '../handler.js'

/** Between the last request's start and the end of the invocation: its timeout, and this much for settling. */
const SETTLE_MS = 5_000

/** Kept for the life of the process, so that the next pass finds its connections open. */
let publishers: ReadonlyMap<string, Publisher> | undefined

/** One relay pass. Scheduled every minute; passes overlap, and any number may run at once. */
export const handler = createHandler({
  name: 'relay',
  settings: relaySettings,
  check: checkRelaySettings,
  schema: 'checked',
  async run({ settings, store, telemetry, requestId, deadline: hardDeadline }) {
    const { destinations, routes, defaultDestination, passSeconds, requestTimeoutMs } = settings
    const { maxAttempts, retryBaseMs: baseMs, retryCapMs: capMs } = settings
    const budget = deadlineAfter(systemClock, passSeconds * 1000)
    const latest = deadlineAfter(systemClock, hardDeadline.remainingMs() - requestTimeoutMs - SETTLE_MS)
    const totals = await relayPass({
      store,
      route: compileRoutes({ destinations, routes, defaultDestination }),
      publishers: (publishers ??= createPublishers(destinations, settings.source, requestTimeoutMs)),
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

function createPublishers(destinations: Destinations, source: string, requestTimeoutMs: number): ReadonlyMap<string, Publisher> {
  const made = new Map<string, Publisher>()
  for (const [name, destination] of Object.entries(destinations)) {
    // a client of its own for each destination, so that one which hangs keeps no sockets from the others
    switch (destination.type) {
      case 'eventbridge':
        made.set(name, createEventBridgePublisher({ client: createEventBridgeClient({ requestTimeoutMs }), destination, source }))
        break
      case 'sqs':
        made.set(name, createSqsPublisher({ client: createSqsClient({ requestTimeoutMs }), destination, source }))
        break
      case 'sns':
        // no publisher yet: its events wait, visible and alarmed as unrouted
        break
    }
  }
  return made
}
