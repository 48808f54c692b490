import type { Template } from 'aws-cdk-lib/assertions'
import { Client } from 'pg'
import { expect, vi } from 'vitest'
import type { AlarmName } from '../../lib/monitoring/alarm-catalogue.js'
import type { InvocationResult, LocalStack } from '../../src/local/stack.js'
import { lambdaEnvironment } from '../../src/local/lambda/environment.js'
import { LocalFunction } from '../../src/local/lambda/local-function.js'
import { builtFile, handlerBundle } from '../../src/local/lambda/package-root.js'
import { startLocalStack } from '../../src/local/stack.js'
import { watch, type AlarmDefinition, type AlarmState, type MetricValue } from '../support/alarm-evaluator.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'
import { exampleTemplate, resource, resourcesOf } from './synthesis.js'

export type RigHandler = 'relay' | 'monitor' | 'cleanup' | 'canary'

/** The destinations of the local stack, as a configuration for an account names them, and its installation. */
const configuration = {
  installation: 'local',
  destinations: {
    bus: { type: 'eventbridge', eventBusArn: 'arn:aws:events:eu-central-1:111122223333:event-bus/bus' },
    queue: { type: 'sqs', queueArn: 'arn:aws:sqs:eu-central-1:111122223333:queue' },
    fifo: { type: 'sqs', queueArn: 'arn:aws:sqs:eu-central-1:111122223333:fifo.fifo' },
    topic: { type: 'sns', topicArn: 'arn:aws:sns:eu-central-1:111122223333:topic' },
  },
  routes: [],
  default: 'bus',
}
let template: Template | undefined
export const rigTemplate = (): Template => (template ??= exampleTemplate(configuration))

/** An alarm as it was synthesised; the one on canaries is that of destination `bus`. */
export function definition(name: AlarmName): AlarmDefinition {
  const id = `Outbox${name.charAt(0).toUpperCase()}${name.slice(1)}Alarm`
  return resource(rigTemplate(), 'AWS::CloudWatch::Alarm', id).Properties as unknown as AlarmDefinition
}

const DAY = 86_400

/** How many periods CloudWatch looks back beyond those it needs, which it does not say: an alarm must be right with each. */
const beyond = [0, 2, 5]

interface Emf {
  readonly _aws: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string
      readonly Dimensions: readonly (readonly string[])[]
      readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[]
    }[]
  }
  readonly [name: string]: unknown
}

/** One value that CloudWatch would take from a line that a handler printed. */
export interface EmittedValue {
  readonly namespace: string
  readonly name: string
  readonly unit: string
  readonly dimensions: Readonly<Record<string, string>>
  readonly value: number
}

/** What CloudWatch takes from the lines of an invocation: of each EMF line every metric, once per set of dimensions. */
export function emittedValues(logs: readonly string[]): readonly EmittedValue[] {
  const lines = logs.filter((line) => line.startsWith('{"_aws"')).map((line) => JSON.parse(line) as Emf)
  return lines.flatMap((line) =>
    line._aws.CloudWatchMetrics.flatMap(({ Namespace: namespace, Dimensions, Metrics }) =>
      Dimensions.flatMap((names) =>
        Metrics.flatMap(({ Name: name, Unit: unit }) => {
          const dimensions = Object.fromEntries(names.map((each) => [each, String(line[each])]))
          return [line[name]].flat().map((value) => ({ namespace, name, unit, dimensions, value: Number(value) }))
        }),
      ),
    ),
  )
}

const keyOf = (namespace: string, name: string, dimensions: Readonly<Record<string, string>>): string =>
  [
    namespace,
    name,
    ...Object.entries(dimensions)
      .map(([key, value]) => `${key}=${value}`)
      .sort(),
  ].join(' ')

/**
 * Drives the real handlers on a local stack and evaluates the synthesised alarms on what they emit.
 *
 * Time is mapped: what is emitted gets the time of the rig's own clock, and when that moves, the rows of the queue grow older by
 * as much. So a test takes as long as its invocations.
 *
 * What AWS/Lambda would count is derived from the local host's record of each invocation: `Invocations` 1; `Errors` 1 if it threw,
 * died or was killed by its timeout, else 0; `Throttles` and `AsyncEventsDropped` for one that found no concurrency, see `refuse`.
 */
export class AlarmRig {
  readonly stack: LocalStack
  readonly clients: OutboxClients
  /** As the owner of the database, beside the Data API. */
  readonly database: Client
  readonly #values = new Map<string, MetricValue[]>()
  readonly #functions: LocalFunction[] = []
  #nowSeconds = 0
  #watchedFrom = 0

  private constructor(stack: LocalStack, database: Client) {
    this.stack = stack
    this.clients = outboxClients(stack.description)
    this.database = database
  }

  static async start(): Promise<AlarmRig> {
    const late: { rig?: AlarmRig } = {}
    const first = new Set<string>()
    const stack = await startLocalStack({
      port: 0,
      relays: 0,
      // the rig invokes, and nobody beside it
      periods: { monitor: DAY, cleanup: DAY },
      log: (line) => {
        for (const message of ['Backlog measured', 'Cleanup completed']) if (line.includes(message)) first.add(message)
        late.rig?.hear(line)
      },
    })
    // the stack's own schedules begin at once
    await vi.waitFor(() => expect(first.size).toBe(2), { timeout: 60_000 })
    const database = new Client({ connectionString: stack.description.databaseUrl })
    await database.connect()
    return (late.rig = new AlarmRig(stack, database))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#functions.map((one) => one.stop()))
    this.clients.destroy()
    await this.database.end()
    await this.stack.stop()
  }

  /** An empty outbox without faults, and nothing emitted yet. */
  async begin(): Promise<void> {
    this.stack.faults.clear()
    await this.database.query('TRUNCATE outbox, outbox_delivery, outbox_receipt, outbox_circuit')
    await this.database.query(
      `UPDATE outbox_shard SET lease_token = NULL, lease_until = '-infinity', handed = '{}', reclaimed_from = NULL`,
    )
    this.#values.clear()
    this.#nowSeconds = 0
    this.#watchedFrom = 0
  }

  /** Runs one invocation and keeps what it emitted. */
  async invoke(handler: RigHandler, event?: unknown): Promise<InvocationResult> {
    return this.record(handler, await this.stack.invoke(handler, event))
  }

  /** The same handler as another configuration makes it, by its variables; with the rights of the database's owner. */
  configured(handler: RigHandler, variables: Readonly<Record<string, string>>, timeoutSeconds = 90): LocalFunction {
    const { endpoint, resourceArn, secretArn, database } = this.stack.description
    const place = {
      OUTBOX_CLUSTER_ARN: resourceArn,
      OUTBOX_SECRET_ARN: secretArn,
      OUTBOX_DATABASE: database,
      OUTBOX_INSTALLATION: 'local',
      ...(handler === 'relay' ? { OUTBOX_PROFILE: 'drain' } : {}),
    }
    const made = new LocalFunction(
      {
        name: handler,
        hostPath: builtFile('local', 'lambda-host.mjs'),
        modulePath: handlerBundle(handler),
        timeoutSeconds,
        environment: { ...lambdaEnvironment(handler, endpoint), ...place, ...variables },
      },
      () => undefined,
    )
    this.#functions.push(made)
    return made
  }

  /** Keeps what an invocation emitted, and what Lambda would have counted. */
  record(handler: RigHandler, result: InvocationResult): InvocationResult {
    if (handler !== 'canary') this.#keepAll(result.logs)
    this.#lambda(handler, 'Invocations', 1)
    this.#lambda(handler, 'Errors', result.error === null ? 0 : 1)
    this.#lambda(handler, 'Throttles', 0)
    return result
  }

  /**
   * A tick that meets no free concurrency: Lambda counts a throttle, keeps the event and tries again, and drops it when it is
   * older than the function allows, which is before the next tick's.
   */
  refuse(handler: RigHandler): void {
    const configs = Object.values(resourcesOf(rigTemplate(), 'AWS::Lambda::EventInvokeConfig'))
    const own = configs.find(({ Properties }) => JSON.stringify(Properties.FunctionName).includes(functionIdBegins(handler)))
    expect(own?.Properties).toMatchObject({ MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 0 })
    this.#lambda(handler, 'Throttles', 1)
    this.#lambda(handler, 'AsyncEventsDropped', 1)
  }

  /**
   * A relay waits for a slow queue, and another one takes over its shard, as after a freeze of 30 s.
   * The queue must be slow already.
   */
  async takeOver(): Promise<readonly InvocationResult[]> {
    await this.clients.insert('Made', '{}', 'queue')
    const slow = this.invoke('relay')
    await vi.waitFor(
      async () => {
        const { rowCount } = await this.database.query(`SELECT FROM outbox_shard WHERE lease_until > now()`)
        expect(rowCount).toBeGreaterThan(0)
      },
      { timeout: 60_000, interval: 20 },
    )
    await this.database.query(`UPDATE outbox_shard SET lease_until = now() - interval '1 s' WHERE lease_until > now()`)
    const second = await this.invoke('relay')
    return [await slow, second]
  }

  /** An event that waits is suspected, and the relay that served it alone then has ended without a word too. */
  async crashAlone(): Promise<void> {
    await this.clients.insert('Made', '{}', 'queue')
    const claim = async (suspectLeaseSeconds: number | null) => {
      const { rows } = await this.database.query<{ token: string; id: string }>(
        `SELECT t.token, c.id FROM gen_random_uuid() AS t(token)
          CROSS JOIN LATERAL outbox_claim(t.token, 'gone', 1, 1000, 1, 1, 0, NULL, $1) c`,
        [suspectLeaseSeconds],
      )
      return rows[0]!
    }
    await claim(null)
    const { token, id } = await claim(0)
    await this.database.query('SELECT outbox_start($1, $2)', [token, id])
  }

  /** Moves the clock, and everything in the database with it. */
  async pass(seconds: number): Promise<void> {
    this.#nowSeconds += seconds
    await this.database.query(
      `UPDATE outbox_delivery SET due_at = due_at - $1::interval, retry_at = retry_at - $1::interval, failed_at = failed_at - $1::interval`,
      [`${seconds} s`],
    )
    await this.database.query(
      `UPDATE outbox_circuit SET opened_at = opened_at - $1::interval, retry_at = retry_at - $1::interval, released_at = released_at - $1::interval`,
      [`${seconds} s`],
    )
    await this.database.query(`UPDATE outbox_receipt SET delivered_at = delivered_at - $1::interval`, [`${seconds} s`])
  }

  /** So many periods in which this happens; a minute each, unless it is said. */
  async periods(count: number, happens: () => Promise<unknown> = () => Promise.resolve(), seconds = 60): Promise<void> {
    for (let period = 0; period < count; period++) {
      await happens()
      await this.pass(seconds)
    }
  }

  /** The alarm is watched from now on: what was before is its normal life. */
  watch(): void {
    this.#watchedFrom = this.#nowSeconds
  }

  /** The states of an alarm since `watch()`, in order, whatever CloudWatch's range is. */
  expectStates(name: AlarmName, expected: readonly AlarmState[]): void {
    const alarm = definition(name)
    const values = this.#values.get(keyOf(alarm.Namespace, alarm.MetricName, dimensionsOf(alarm))) ?? []
    for (const extra of beyond) {
      const states = watch(alarm, values, { from: this.#watchedFrom, to: this.#nowSeconds, extra })
      expect(states.slice(1), `${name}, ${extra} datapoints beyond its ${alarm.EvaluationPeriods}`).toEqual(expected)
    }
  }

  /** How many canaries have come back since `begin()`. */
  get canaries(): number {
    return [...this.#values].filter(([key]) => key.includes(' CanaryAge ')).flatMap(([, values]) => values).length
  }

  /** The bus invokes the canary, so nobody has the result of that: its lines are all there is. */
  private hear(line: string): void {
    if (line.startsWith('canary ')) this.#keepAll([line.slice('canary '.length)])
  }

  #keepAll(logs: readonly string[]): void {
    for (const { namespace, name, dimensions, value } of emittedValues(logs)) this.#keep(namespace, name, dimensions, value)
  }

  #lambda(handler: RigHandler, name: string, value: number): void {
    this.#keep('AWS/Lambda', name, { FunctionName: functionIdBegins(handler) }, value)
  }

  #keep(namespace: string, name: string, dimensions: Readonly<Record<string, string>>, value: number): void {
    const key = keyOf(namespace, name, dimensions)
    const values = this.#values.get(key) ?? []
    this.#values.set(key, [...values, { atSeconds: this.#nowSeconds, value }])
  }
}

const functionIdBegins = (handler: RigHandler): string => `Outbox${handler.charAt(0).toUpperCase()}${handler.slice(1)}Function`

/** A function's name is known at deployment; until then its logical id, less its hash, is its name. */
function dimensionsOf({ Dimensions }: AlarmDefinition): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Dimensions.map(({ Name, Value }) => [
      Name,
      typeof Value === 'string' ? Value : (Value as { readonly Ref: string }).Ref.replace(/[0-9A-F]{8}$/, ''),
    ]),
  )
}
