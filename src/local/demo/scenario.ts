import { SQSClient } from '@aws-sdk/client-sqs'
import { deadlineAfter } from '../../core/deadline.js'
import { createRdsDataClient } from '../../data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../data-api/database.js'
import { systemClock } from '../../data-api/system-clock.js'
import { migrateInbox } from '../../store/migrator.js'
import type { LocalStackDescription } from '../stack.js'
import { startConsumer, type Consumer } from './consumer.js'
import { imbalances, type Ledger } from './ledger.js'
import { startOrderService } from './order-service.js'
import { faultControl, haveOutage, swallowSome } from './outage.js'
import { pause, pauseUntil } from './pause.js'
import { ledgerLines, secondLine, secondTitle, type Phase } from './report.js'
import { shipping } from './shipping.js'
import { createShop } from './shop.js'
import { glanceAtOrders, tallyOrders, type Glance } from './tally.js'

export interface ScenarioOptions {
  /** Orders to commit, 1 or more. */
  readonly orders: number
  /** Length of the outage, 0 or more. */
  readonly outageSeconds: number
  /** `swallow`: the queues say yes to some messages and deliver nothing, so that the ledger cannot balance. */
  readonly broken: 'nothing' | 'swallow'
}

export interface ScenarioResult {
  readonly ledger: Ledger
  /** Why the ledger does not balance; empty if it does. */
  readonly reasons: readonly string[]
}

/** Where what is said and logged goes, and what ends the scenario early. */
export interface ScenarioContext {
  readonly say: (line: string) => void
  readonly log: (line: string) => void
  readonly stop: AbortSignal
}

/** What the demo's thread tells. */
export type WorkerMessage =
  | { readonly kind: 'say'; readonly line: string }
  | { readonly kind: 'log'; readonly line: string }
  | { readonly kind: 'result'; readonly result: ScenarioResult | 'interrupted' }

const writers = 4
const receivers = 2
/** If a relay does not start, the rest shows it. */
const firstOrderLimitMs = 30_000
/** Part of the orders that is written before the outage begins. */
const outageAfter = 0.3
/** Writing takes so much longer than twice the outage: the outage is in the middle of it. */
const writingSeconds = 2
/** Older than this, the backlog is still recovering. */
const recoveredSeconds = 2
/** No delivery for so long, nothing due and nothing in a queue: whatever has not arrived is lost. */
const quietMs = 1500
/** What is not delivered so long after the last order is not coming. */
const drainLimitMs = 120_000

/** Writes, breaks, mends and counts, on a running local stack. */
export async function runScenario(
  stack: LocalStackDescription,
  options: ScenarioOptions,
  context: ScenarioContext,
): Promise<ScenarioResult | 'interrupted'> {
  const { endpoint, region, queues } = stack
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  const client = createRdsDataClient({ endpoint, region, credentials })
  const sqs = new SQSClient({ endpoint, region, credentials })
  try {
    const database = createDataApiDatabase({ ...stack, client })
    await createShop(database)
    await migrateInbox(database, { schema: 'shipping', clock: systemClock, deadline: deadlineAfter(systemClock, 30_000) })

    const queueUrls = ['fifo', 'bus-target'].flatMap((name) => queues[name] ?? [])
    const ship = shipping(database)
    const consumer = startConsumer({ sqs, queueUrls, receivers, ship, log: context.log })
    const rolledBack = await writeAndDrain(database, consumer, endpoint, options, context).finally(() => consumer.stop())
    if (context.stop.aborted) return 'interrupted'

    const counts = { rolledBack, duplicates: consumer.duplicates() }
    const { ledger, strangers } = await tallyOrders(database, counts)
    const reasons = imbalances(ledger, strangers)
    context.say(`\n${ledgerLines(ledger, reasons).join('\n')}`)
    return { ledger, reasons }
  } finally {
    client.destroy()
    sqs.destroy()
  }
}

/** Answers how many orders were rolled back. */
async function writeAndDrain(
  database: DataApiDatabase,
  consumer: Consumer,
  endpoint: string,
  options: ScenarioOptions,
  { say, log, stop }: ScenarioContext,
): Promise<number> {
  const { orders, outageSeconds, broken } = options
  const over = new AbortController()
  const ending = AbortSignal.any([stop, over.signal])
  const faults = faultControl(endpoint)
  let down = false
  let watching: Promise<void> | undefined
  const phaseOf = ({ committed, ageSeconds }: Glance): Phase => {
    if (down) return 'OUTAGE'
    if (ageSeconds > recoveredSeconds) return 'recovering'
    return committed < orders ? 'flowing' : 'draining'
  }

  // a relay has to start its process first, and an outage that nobody meets shows nothing
  const afterFirst = async (): Promise<void> => {
    await shipped(database, 1, ending)
    say(
      `The first order is through. Now ${orders} orders by ${writers} writers; a consumer ships what arrives.\n\n${secondTitle}`,
    )
    watching = watch(database, (elapsedMs, glance) => say(secondLine(elapsedMs, phaseOf(glance), glance)), ending).catch(
      (error: unknown) => log(`watching ended: ${String(error)}`),
    )
  }
  const ordersPerSecond = orders / (writingSeconds + 2 * outageSeconds)
  const service = startOrderService({ database, orders, writers, ordersPerSecond, afterFirst, stop: ending })

  const breakAndMend = async (): Promise<void> => {
    while (service.committed() < orders * outageAfter && !ending.aborted) await pause(50, ending)
    if (outageSeconds > 0 && !ending.aborted) {
      down = true
      say(`  -- every destination is down for ${outageSeconds} s --`)
      await haveOutage(faults, outageSeconds, ending)
      down = false
      say('  -- destinations are back --')
    }
    if (broken === 'swallow') await swallowSome(faults)
  }

  try {
    await Promise.all([service.ended, breakAndMend()])
    await drain(database, consumer, ending)
  } finally {
    over.abort()
    await Promise.allSettled([service.ended, watching])
  }
  return service.rolledBack()
}

/** Looks every second until the signal aborts. */
async function watch(
  database: DataApiDatabase,
  show: (elapsedMs: number, glance: Glance) => void,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now()
  for (let second = 1; ; second++) {
    await pauseUntil(startedMs + second * 1000, signal)
    if (signal.aborted) return
    const glance = await glanceAtOrders(database)
    show(performance.now() - startedMs, glance)
  }
}

/** Waits until so many orders are shipped, but not for ever. */
async function shipped(database: DataApiDatabase, orders: number, signal: AbortSignal): Promise<void> {
  const limitMs = performance.now() + firstOrderLimitMs
  while (!signal.aborted && performance.now() < limitMs) {
    const { consumed } = await glanceAtOrders(database)
    if (consumed >= orders) return
    await pause(100, signal)
  }
}

/** Waits until every order is shipped, or it is certain that nothing more will come. */
async function drain(database: DataApiDatabase, consumer: Consumer, signal: AbortSignal): Promise<void> {
  const limitMs = performance.now() + drainLimitMs
  while (!signal.aborted && performance.now() < limitMs) {
    const { due } = await glanceAtOrders(database)
    if (due === 0 && consumer.quietMs() > quietMs && (await consumer.waiting()) === 0) return
    await pause(200, signal)
  }
}
