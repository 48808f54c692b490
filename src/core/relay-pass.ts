import { Circuits } from './circuits.js'
import type { Clock, Random } from './clock.js'
import type { Deadline } from './deadline.js'
import type { OutboxStore, Publisher, Telemetry } from './ports.js'
import { ClaimSize, type PassContext, type RelayPassSettings, type RelayPassTotals } from './pass-context.js'
import { createPrepare } from './prepare.js'
import type { Routing } from './route.js'
import { Sender } from './sender.js'
import { BatchServer } from './serve-batch.js'
import { Signal } from './signal.js'
import { Turn } from './turn.js'

/** Batches that send, at the same time: one is claimed or settled while another is published. */
const SENDING_BATCHES = 2
/** With those that only wait for a slow destination: each of them leases a shard at least, and there are 16. */
const BATCHES = 16
/** After a claim that brought at least so many events more are likely: the next batch is claimed at once. */
const MORE_LIKELY_EVENTS = 50
/** A batch that takes longer lets another one look for what comes in meanwhile. */
const HAND_OVER_MS = 200
/** The first wait when nothing is due; it doubles up to the setting `idleWaitMs`. */
const FIRST_IDLE_WAIT_MS = 20
/** After so long with suspects, served one by one, what else is due has its turn. */
const SUSPECTS_MS = 2000
/** Metrics are written out at least so often while there is work, so that a killed invocation loses no more. */
const FLUSH_MS = 1000

export interface RelayPassOptions {
  readonly store: OutboxStore
  readonly route: (eventType: string, chosen: string | null) => Routing
  /** Destination name -> publisher. */
  readonly publishers: ReadonlyMap<string, Publisher>
  readonly settings: RelayPassSettings
  readonly clock: Clock
  readonly random: Random
  readonly telemetry: Telemetry
  readonly owner: string
  /** Beyond it nothing is claimed and no request begins. */
  readonly deadline: Deadline
  /** Beyond it nothing can be settled any more: the end of the invocation, less a margin. */
  readonly hardDeadline: Deadline
}

/**
 * One relay pass: claims, publishes and settles until the deadline (profile `continuous`) or until nothing is due (`drain`).
 * When it returns, or throws, nothing is in flight.
 *
 * @throws SqlError if the database cannot be used. What was claimed is given back if that is possible, else its lease runs out.
 * @example
 * const totals = await relayPass({ store, route, publishers, settings, clock, random, telemetry, owner, deadline, hardDeadline })
 */
export async function relayPass(options: RelayPassOptions): Promise<RelayPassTotals> {
  const { store, settings, clock, random, telemetry, publishers, owner, deadline, hardDeadline } = options
  const servers = new Set<BatchServer>()
  const onRoom = (): void => {
    for (const server of servers) server.wake()
  }
  const senders = new Map<string, Sender>()
  for (const [destination, publisher] of publishers) {
    const { requestsInFlight, policy } = settings
    senders.set(destination, new Sender({ destination, publisher, requestsInFlight, policy, clock, random, telemetry, onRoom }))
  }
  const circuits = new Circuits({
    store,
    senders,
    settings,
    clock,
    random,
    telemetry,
    hardDeadline,
    readyCount: (destination) => [...servers].reduce((events, server) => events + server.readyCount(destination), 0),
  })
  const context: PassContext = {
    store,
    settings,
    senders,
    circuits,
    prepare: createPrepare({ route: options.route, publishers, policy: settings.policy, random, telemetry }),
    clock,
    random,
    telemetry,
    owner,
    deadline,
    hardDeadline,
    claimSize: new ClaimSize(settings.claimRows),
    totals: { claims: 0, claimed: 0, published: 0, retried: 0, held: 0, failed: 0, unrouted: 0, leaseLost: 0 },
    suspects: { wait: false },
    stop: { requested: false },
  }
  const [sending, turn, ended] = [new Turn(SENDING_BATCHES), new Turn(), new Signal(clock)]
  const shared = { servers, sending, turn, ended, idleWaitMs: FIRST_IDLE_WAIT_MS, suspectsSinceMs: null }
  await circuits.refresh()
  // settled, so that it is no unhandled rejection while the batches end
  const watching = Promise.allSettled([
    circuits.run().catch((error: unknown) => {
      context.stop.requested = true
      throw error
    }),
  ])
  const serving = Promise.allSettled(Array.from({ length: BATCHES }, () => serveBatches(context, shared)))
  void serving.then(() => {
    circuits.end()
  })
  const ends = [...(await serving), ...(await watching)]
  telemetry.flush()
  for (const end of ends) if (end.status === 'rejected') throw end.reason as Error
  return context.totals
}

/** Serves one batch after another. Whoever has the turn looks for work, so idle relays cost one claim per wait, not one per batch. */
async function serveBatches(
  context: PassContext,
  shared: {
    servers: Set<BatchServer>
    sending: Turn
    turn: Turn
    ended: Signal
    idleWaitMs: number
    suspectsSinceMs: number | null
  },
): Promise<void> {
  const { clock, telemetry, deadline, settings, stop, circuits, suspects } = context
  const { servers, sending, turn, ended } = shared
  let flushedAtMs = clock.nowMs()
  for (;;) {
    await sending.take()
    const makeRoom = once(() => sending.pass())
    await turn.take()
    const handOver = once(() => turn.pass())
    // a suspect is served alone, else what it ends the relay with would share the blame, and be lost with it
    while (suspects.wait && servers.size > 0 && deadline.remainingMs() > 0) await ended.wait(deadline.remainingMs())
    const othersTurn = shared.suspectsSinceMs !== null && clock.nowMs() - shared.suspectsSinceMs > SUSPECTS_MS
    const takesSuspects = servers.size < 1 && !othersTurn
    const done = new AbortController()
    const server = new BatchServer(context)
    servers.add(server)
    try {
      if (stop.requested || deadline.remainingMs() <= 0) return
      const claimed = (events: number): void => {
        if (events >= MORE_LIKELY_EVENTS) handOver()
        else void clock.sleep(HAND_OVER_MS, done.signal).then(handOver)
      }
      const served = await server.serve({ claimed, waits: makeRoom, takesSuspects })
      shared.suspectsSinceMs = served === 'suspect' ? (shared.suspectsSinceMs ?? clock.nowMs()) : null
      if (served !== 'nothing' || othersTurn) {
        shared.idleWaitMs = FIRST_IDLE_WAIT_MS
      } else {
        if (settings.profile === 'drain' && takesSuspects && servers.size === 1 && !circuits.releasing) stop.requested = true
        await clock.sleep(Math.min(shared.idleWaitMs, Math.max(0, deadline.remainingMs())))
        shared.idleWaitMs = Math.min(shared.idleWaitMs * 2, settings.idleWaitMs)
      }
    } catch (error) {
      stop.requested = true
      throw error
    } finally {
      servers.delete(server)
      ended.raise()
      done.abort()
      handOver()
      makeRoom()
    }
    if (clock.nowMs() - flushedAtMs >= FLUSH_MS) {
      telemetry.flush()
      flushedAtMs = clock.nowMs()
    }
  }
}

function once(action: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    action()
  }
}
