import { setMaxListeners } from 'node:events'
import { createWriteStream } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { BenchTools } from '../bench/support/run.js'
import { startBenchStack, type BenchStack } from '../bench/support/stack.js'
import { deadlineAfter } from '../src/core/deadline.js'
import { systemClock } from '../src/data-api/system-clock.js'
import { migrateInbox } from '../src/store/migrator.js'
import { readAnswers, type EventAnswer } from './answers.js'
import { Consumers } from './consumers.js'
import { readCounts, readDatabase, readGauges, type Evidence, type GaugeReading, type OperatorAct } from './evidence.js'
import { Injector } from './injector.js'
import { MetricSums } from './metrics.js'
import { operate, releaseAll, tidyUp } from './operators.js'
import type { ChaosOptions } from './options.js'
import { operationsOf } from './operations.js'
import { Fleet } from './relays.js'
import { scenarios } from './scenarios.js'
import { scheduleOf } from './schedule.js'
import { runTimeline } from './timeline.js'
import { installWatch } from './watch.js'
import { runWriters, type Told } from './writers.js'

const maxAttempts = 4

/** Times of the product, scaled down as far as its settings allow: a minute has as much of each as a quarter of an hour. */
export const config = {
  maxAttempts,
  leaseSeconds: 8,
  passSeconds: 8,
  requestTimeoutMs: 2_000,
  retryBaseMs: 50,
  retryCapMs: 1_500,
  // (idle relays shall not use up the machine)
  idleWaitMs: 800,
  retentionSeconds: 60,
  cleanupRows: 200,
  routes: [{ eventType: 'SkippedOnFailure', to: 'bus', onFailure: 'skip' }],
} as const

/** What a run leaves waiting grows with it. */
const healSecondsOf = (seconds: number) => 180 + seconds
const progressMs = 15_000

/** Writes, breaks, heals, and collects the evidence of one run. */
export async function runChaos(options: ChaosOptions, tools: BenchTools): Promise<Evidence> {
  const { seed, seconds, relays, writers, scenario: name } = options
  const scenario = scenarios[name]
  const schedule = scheduleOf(options)
  const answers: EventAnswer[] = []
  const acts: OperatorAct[] = []
  const metrics = new MetricSums()
  const file = options.logFile === undefined ? undefined : createWriteStream(options.logFile)
  const note = (line: string): void => void file?.write(`${new Date().toISOString()} ${line}\n`)
  const log = (line: string) => {
    metrics.hear(line)
    note(line)
  }
  tools.say(`seed ${seed}, ${seconds} s, ${relays} relays, ${writers} writers, ${name}: starting a stack`)
  const bench = await startBenchStack(tools, {
    relays: 0,
    config,
    periods: { monitor: 10, cleanup: 4 },
    onExchange: (exchange) => answers.push(...readAnswers(exchange, Date.now())),
    onLog: log,
  })
  const { stack, database } = bench
  await prepareDatabase(bench)
  const fleet = new Fleet({ description: stack.description, config, clockShiftsMs: schedule.clockShiftsMs, log })
  tools.atEnd(() => fleet.stop())
  const injector = new Injector(stack, fleet)
  const consumers = new Consumers(stack.description, database)
  tools.atEnd(() => consumers.stop())

  tools.say('writing and breaking')
  fleet.start()
  const operations = Array.from({ length: writers }, (_, writer) => operationsOf({ seed, seconds }, writer))
  const stop = new AbortController()
  // every writer waits for it
  setMaxListeners(0, stop.signal)
  tools.atEnd(() => {
    stop.abort()
    return Promise.resolve()
  })
  const { databaseUrl } = stack.description
  const told: Told = { committed: new Set(), rolledBack: new Set(), failed: 0, done: 0 }
  const planned = operations.flat().length
  // a slow machine writes less of it: nothing is written in peace
  const tooLate = setTimeout(() => stop.abort(), seconds * 1000)
  const progress = setInterval(() => {
    tools.say(`${told.done} of ${planned} transactions, ${consumers.delivered.size} events delivered, ${injector.total} faults`)
  }, progressMs)
  await Promise.all([
    runWriters({ database, databaseUrl, operations, told, stop: stop.signal, note }),
    runTimeline(
      [
        ...schedule.phases.map((phase) => ({ atMs: phase.atMs, act: () => injector.setPhase(phase) })),
        ...schedule.blows.map((blow) => ({
          atMs: blow.atMs,
          act: () => {
            note(JSON.stringify(blow))
            return injector.strike(blow)
          },
        })),
        ...schedule.operators.map((call) => ({
          atMs: call.atMs,
          act: async () => acts.push(await operate(database, bench.query, call)),
        })),
        // faults last as long as the run, whatever is written
        { atMs: seconds * 1000, act: () => undefined },
      ],
      stop.signal,
    ),
  ]).finally(() => {
    clearInterval(progress)
    clearTimeout(tooLate)
  })

  await injector.heal()
  const killed = await fleet.stop()
  tools.say(`faults: ${JSON.stringify(injector.counts)}`)
  const stoppedGauges = await compareGauges(bench)
  tools.say('healing: the queue')
  fleet.start()
  const healSeconds = healSecondsOf(seconds)
  await drain(bench, healSeconds)
  await fleet.stop()
  const gauges = [...stoppedGauges, ...(await compareGauges(bench))]
  tools.say('healing: the consumers')
  await until('the consumers', healSeconds, async () => (await consumers.waiting()) === 0)
  await consumers.stop()

  return {
    scenario,
    seconds,
    maxAttempts,
    retentionSeconds: config.retentionSeconds,
    told,
    acts,
    answers,
    delivered: consumers.delivered,
    ...(await readDatabase(bench.query)),
    gauges,
    counts: await readCounts(bench.query, answers, (metric) => metrics.get(metric)),
    deaths: killed + fleet.timedOut + (injector.counts['relay kill'] ?? 0),
    faultsInjected: injector.total,
  }
}

async function prepareDatabase({ stack, database, query }: BenchStack): Promise<void> {
  const client = new pg.Client({ connectionString: stack.description.databaseUrl })
  await client.connect()
  await installWatch(client)
  await client.query('ALTER SYSTEM SET track_commit_timestamp = on')
  await client.end()
  await stack.postgres.restart()
  await migrateInbox(database, { schema: 'chaos', clock: systemClock, deadline: deadlineAfter(systemClock, 30_000) })
  await query('SELECT 1')
}

/** Waits until nothing is left to deliver, while operators let blocked keys go on. What is left then is stuck. */
async function drain({ query, database }: BenchStack, healSeconds: number): Promise<void> {
  await tidyUp(database)
  const isEmpty = async () => {
    await releaseAll(database)
    const [row] = await query<{ left: number }>(
      `SELECT ((SELECT count(*) FROM outbox_delivery WHERE lane < 3)
             + (SELECT count(*) FROM outbox_shard WHERE lease_token IS NOT NULL))::int AS "left"`,
    )
    return row!.left === 0
  }
  await until('the queue', healSeconds, isEmpty)
  // what failed last
  await releaseAll(database)
}

/** The monitor's gauges beside the tables, at a moment when nothing moves. */
async function compareGauges({ stack, query }: BenchStack): Promise<readonly GaugeReading[]> {
  for (let attempt = 1; ; attempt++) {
    const before = await readGauges(query)
    const { logs } = await stack.invoke('monitor')
    const after = await readGauges(query)
    const gauges = new MetricSums()
    for (const line of logs) gauges.hear(line)
    const readings = Object.keys(before).map((name): GaugeReading => {
      const [least, most] = [before[name]!, after[name]!]
      return {
        name,
        gauge: gauges.get(name),
        least: Math.min(least, most) - slackOf(name),
        most: Math.max(least, most) + slackOf(name),
      }
    })
    // a lease that ran out, an event that became due meanwhile
    const moved = readings.some(({ name, least, most }) => slackOf(name) === 0 && least !== most)
    if (!moved || attempt === 20) return readings
    await pause(200)
  }
}

/** An age is in whole milliseconds. */
function slackOf(name: string): number {
  return name === 'BacklogAge' ? 0.01 : 0
}

/** Waits until it holds, or so long: then the oracles say what is wrong. */
async function until(what: string, seconds: number, holds: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + seconds * 1000
  while (!(await holds())) {
    if (performance.now() > giveUpAt) {
      process.emitWarning(`after ${seconds} s there was still something in ${what}`)
      return
    }
    await pause(200)
  }
}
