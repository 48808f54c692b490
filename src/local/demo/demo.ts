import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SQSClient } from '@aws-sdk/client-sqs'
import { deadlineAfter } from '../../core/deadline.js'
import { createRdsDataClient } from '../../data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../data-api/database.js'
import { systemClock } from '../../data-api/system-clock.js'
import { createInbox } from '../../inbox/inbox.js'
import { migrateInbox } from '../../store/migrator.js'
import { startLocalStack, type LocalStack } from '../stack.js'
import { startConsumer, type Consumer, type Ship } from './consumer.js'
import { imbalances, type Ledger } from './ledger.js'
import { startOrderService, type OrderService } from './order-service.js'
import { haveOutage, type FaultControl } from './outage.js'
import { pause, pauseUntil } from './pause.js'
import { ledgerLines, secondLine, secondTitle, type Phase } from './report.js'
import { createShop } from './shop.js'
import { glanceAtOrders, tallyOrders, type Glance } from './tally.js'

export interface DemoOptions {
  /** Orders to commit, 1 or more. */
  readonly orders: number
  /** Length of the outage, 0 or more. */
  readonly outageSeconds: number
  /** `swallow`: the queue says yes to some messages and delivers nothing, so that the ledger cannot balance. */
  readonly broken: 'nothing' | 'swallow'
  /** Whether the logs of relays and services go to `say` too. */
  readonly logs: 'shown' | 'hidden'
  /** Gets what a person reads, line by line. */
  readonly say: (line: string) => void
  /** Ends the demo early. */
  readonly stop: AbortSignal
}

export interface DemoResult {
  readonly ledger: Ledger
  /** Why the ledger does not balance; empty if it does. */
  readonly reasons: readonly string[]
}

const writers = 4
const relays = 2
const receivers = 2
/** Orders that are written before the outage begins. */
const outageAfter = 0.3
/** Writing takes this much longer than twice the outage, so that the outage is in the middle of it. */
const writingSeconds = 2
/** No delivery for so long, nothing due and nothing in a queue: whatever has not arrived is lost. */
const quietMs = 2000
/** What is not delivered so long after the last order is not coming. */
const drainLimitMs = 120_000

/**
 * Runs the whole of it on this machine and draws the ledger: four writers, two relays, an outage of every destination, a
 * consumer with an inbox. Leaves nothing behind, however it ends.
 *
 * @returns `interrupted` if `stop` came before the ledger
 * @example
 * const result = await demo({ orders: 2000, outageSeconds: 10, broken: 'nothing', logs: 'hidden', say: console.log, stop })
 */
export async function demo(options: DemoOptions): Promise<DemoResult | 'interrupted'> {
  const { say, stop } = options
  const log = options.logs === 'shown' ? say : () => undefined
  say('Starting PostgreSQL, the RDS Data API, SQS, SNS, EventBridge and 2 relays on this machine ...')
  const stack = await startStack(log)
  try {
    if (stop.aborted) return 'interrupted'
    const { description } = stack
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
    const { endpoint, region } = description
    const client = createRdsDataClient({ endpoint, region, credentials })
    const sqs = new SQSClient({ endpoint, region, credentials })
    try {
      const database = createDataApiDatabase({ ...description, client })
      return await runOn({ database, sqs, queues: description.queues, faults: stack.faults }, options, log)
    } finally {
      client.destroy()
      sqs.destroy()
    }
  } finally {
    await stack.stop()
  }
}

/**
 * The relay's own settings but for one: no retry waits longer than 2 s in place of 60, because a person is watching.
 */
async function startStack(log: (line: string) => void): Promise<LocalStack> {
  const folder = await mkdtemp(path.join(tmpdir(), 'outbox-demo-'))
  try {
    const configFile = path.join(folder, 'config.json')
    await writeFile(configFile, JSON.stringify({ retryCapMs: 2000 }))
    return await startLocalStack({ port: 0, relays, configFile, log })
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The part of a local stack that the demo works with. */
interface Parts {
  readonly database: DataApiDatabase
  readonly sqs: SQSClient
  readonly queues: Readonly<Record<string, string>>
  readonly faults: FaultControl
}

async function runOn(parts: Parts, options: DemoOptions, log: (line: string) => void): Promise<DemoResult | 'interrupted'> {
  const { database, sqs, queues, faults } = parts
  const { orders, outageSeconds, say, stop } = options
  await createShop(database)
  await migrateInbox(database, { schema: 'shipping', clock: systemClock, deadline: deadlineAfter(systemClock, 30_000) })

  const over = new AbortController()
  const ending = AbortSignal.any([stop, over.signal])
  const queueUrls = ['fifo', 'bus-target'].flatMap((name) => queues[name] ?? [])
  const consumer = startConsumer({ sqs, queueUrls, receivers, ship: shipping(database), log })
  const ordersPerSecond = orders / (writingSeconds + 2 * outageSeconds)
  const service = startOrderService({ database, orders, writers, ordersPerSecond, stop: ending })
  let down = false
  const outage = async (): Promise<void> => {
    while (service.committed() < orders * outageAfter && !ending.aborted) await pause(50, ending)
    if (outageSeconds > 0 && !ending.aborted) {
      down = true
      say(`  -- every destination is down for ${outageSeconds} s --`)
      await haveOutage(faults, outageSeconds, ending)
      down = false
      if (!ending.aborted) say('  -- destinations are back --')
    }
    if (options.broken === 'swallow')
      faults.set({ rules: [{ service: 'sqs', operation: 'SendMessageBatch', times: 3, fault: { kind: 'swallow' } }] })
  }
  say(`${orders} orders, ${writers} writers; a consumer ships what arrives.\n\n${secondTitle}`)
  const phase = (glance: Glance): Phase =>
    down ? 'OUTAGE' : glance.ageSeconds > 2 ? 'recovering' : service.committed() < orders ? 'flowing' : 'draining'
  const watching = watch(database, (elapsedMs, glance) => say(secondLine(elapsedMs, phase(glance), glance)), ending).catch(
    (error: unknown) => log(`watching ended: ${String(error)}`),
  )
  try {
    await Promise.all([service.ended, outage()])
    await drain(database, consumer, ending)
  } finally {
    over.abort()
    await Promise.allSettled([service.ended, watching, consumer.stop()])
  }
  if (stop.aborted) return 'interrupted'
  return draw(database, service, consumer, say)
}

/** The consumer's effect, in one transaction with the event's id in the inbox. */
function shipping(database: DataApiDatabase): Ship {
  const inbox = createInbox({ database, schema: 'shipping' })
  return async (eventId, { orderId, customer, customerOrder }) => {
    const { handled } = await inbox.handleOnce(eventId, (tx) =>
      tx.execute({
        sql: `INSERT INTO shipping.shipments (order_id, customer, customer_order)
          VALUES (CAST(:order_id AS uuid), CAST(:customer AS integer), CAST(:customer_order AS integer))`,
        parameters: { order_id: orderId, customer, customer_order: customerOrder },
        repeatable: false,
      }),
    )
    return handled ? 'handled' : 'handled-before'
  }
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

/** Waits until every order is shipped, or it is certain that nothing more will come. */
async function drain(database: DataApiDatabase, consumer: Consumer, signal: AbortSignal): Promise<void> {
  const limitMs = performance.now() + drainLimitMs
  while (!signal.aborted && performance.now() < limitMs) {
    const { due } = await glanceAtOrders(database)
    if (due === 0 && (await consumer.waiting()) === 0 && consumer.quietMs() > quietMs) return
    await pause(200, signal)
  }
}

async function draw(
  database: DataApiDatabase,
  service: OrderService,
  consumer: Consumer,
  say: (line: string) => void,
): Promise<DemoResult> {
  const counts = { rolledBack: service.rolledBack(), duplicates: consumer.duplicates() }
  const { ledger, strangers } = await tallyOrders(database, counts)
  const reasons = imbalances(ledger, strangers)
  say(`\n${ledgerLines(ledger, reasons).join('\n')}`)
  return { ledger, reasons }
}
