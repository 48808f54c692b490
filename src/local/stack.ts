import { relaySettings } from '../config/settings.js'
import { canaryPattern } from '../core/canary.js'
import type { Destinations } from '../core/destination.js'
import { ConfigurationError, OutboxError } from '../core/errors.js'
import { readLocalConfig } from './config/local-config.js'
import { localQueueUrl, planResources, queueArn, type ResourcePlan } from './config/resources.js'
import { control, type HandlerName, type LocalState } from './control/control.js'
import { createDataApi } from './data-api/data-api.js'
import type { Faults } from './faults/faults.js'
import type { Exchange } from './front/front.js'
import { ACCOUNT, REGION } from './front/protocol.js'
import type { InvocationResult } from './lambda/execution-environment.js'
import { startPostgres, type LocalPostgres } from './postgres/launcher.js'
import { startScheduler } from './scheduler/scheduler.js'
import { createRemoteSecrets } from './secrets/remote.js'
import { createSecretsManager } from './secrets/secrets-manager.js'
import {
  createSecrets,
  DATABASE,
  INSTALLATION,
  loginSecretArn,
  openDatabase,
  PASSWORDS_OF,
  RESOURCE_ARN,
} from './stack/database.js'
import { createFunctions, type LocalFunctions } from './stack/functions.js'
import { startServices, type Services } from './stack/services.js'

export type { FaultReport, FaultSetting } from './faults/rules.js'
export type { Exchange, HandlerName, InvocationResult, LocalState }

export interface LocalStackOptions {
  /** Of the endpoint, on 127.0.0.1. Default 4566; 0: any free one. */
  readonly port?: number | undefined
  /** Relays, each a process of its own, invoked once a minute. Default 1; 0: none, events wait until `invoke('relay')`. */
  readonly relays?: number | undefined
  /** Default `postgres`, the only one yet. */
  readonly engine?: 'postgres' | 'mysql' | undefined
  /** JSON file with destinations, routes and settings (docs/local.md). Default: the destinations bus, queue, fifo and topic. */
  readonly configFile?: string | undefined
  /** Keeps the database across restarts. Default: a temporary directory, removed by `stop()`. */
  readonly dataDirectory?: string | undefined
  /** Gets every line that the stack and its functions log. Default: stderr. */
  readonly log?: ((line: string) => void) | undefined
  /** Seconds between invocations. Defaults: 60 for relays and monitor, 3600 for cleanup. */
  readonly periods?: { readonly relay?: number; readonly monitor?: number; readonly cleanup?: number } | undefined
  /** Each invocation of a relay but its first comes up to so many seconds late, at random, as a scheduler's do. Default 0. */
  readonly relayJitterSeconds?: number | undefined
  /**
   * The cluster that the Data API answers for. Default `arn:aws:rds:us-east-1:000000000000:cluster:local`; another one for
   * functions that are deployed to an emulator with the ARN of a cluster of their own.
   */
  readonly resourceArn?: string | undefined
  /**
   * Another Secrets Manager, by its URL, where the Data API looks for secrets that this stack does not have: that of an emulator
   * on which functions are deployed. Default: none.
   */
  readonly secretsEndpoint?: string | undefined
  /** Hears of each request that carried messages to SQS, SNS or EventBridge, just before its answer leaves. Default: nobody. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined
}

/** The line that `outbox local --json` prints. */
export interface LocalStackDescription {
  readonly ready: true
  readonly endpoint: string
  readonly region: string
  readonly resourceArn: string
  readonly secretArn: string
  readonly database: string
  /** For plain SQL clients. */
  readonly databaseUrl: string
  readonly eventBusName: string
  readonly queues: Readonly<Record<string, string>>
  readonly topics: Readonly<Record<string, string>>
}

export interface LocalStack {
  readonly description: LocalStackDescription
  readonly faults: Pick<Faults, 'set' | 'get' | 'clear'>
  /** Runs one invocation, and answers once it has ended. `relay` drains the backlog and returns. Never throws. */
  invoke(handler: HandlerName, event?: unknown): Promise<InvocationResult>
  state(): Promise<LocalState>
  /** Its server: `crash` kills every process of it, `restart` starts it again on the same port and files. */
  readonly postgres: Pick<LocalPostgres, 'crash' | 'restart'>
  /** Kills (SIGKILL), freezes (SIGSTOP) or thaws (SIGCONT) a relay process that `state()` names. Answers whether it was there. */
  signalRelay(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): 'sent' | 'gone'
  /** Invokes a relay beside its schedule, e.g. after a kill. Answers once that invocation has ended. */
  invokeRelay(name: string): Promise<InvocationResult>
  /** Ends every process it started and removes its temporary files. Again: no effect. */
  stop(): Promise<void>
}

/**
 * Starts a whole local stack: PostgreSQL with the outbox in it, RDS Data API, SQS, SNS and EventBridge behind one endpoint, and
 * the very handlers that run in an account, on their schedules.
 *
 * @throws ConfigurationError if the port is taken or the configuration is wrong; OutboxError if something does not start.
 * @example
 * const stack = await startLocalStack({ port: 0, relays: 2 })
 * process.env.AWS_ENDPOINT_URL = stack.description.endpoint
 */
export async function startLocalStack(options: LocalStackOptions = {}): Promise<LocalStack> {
  if (options.engine === 'mysql') {
    throw new ConfigurationError('engine', 'engine is "mysql", which is not available yet; allowed: postgres')
  }
  const log = options.log ?? ((line: string) => void process.stderr.write(`${line}\n`))
  const config = await readLocalConfig(options.configFile)
  const started: (() => Promise<void>)[] = []
  const stopAll = async () => {
    for (const stop of started.splice(0).reverse()) await stop()
  }

  try {
    // what the endpoint needs before it can exist, because its own port is part of it
    const late: { stack?: LocalStack; plan?: ResourcePlan; functions?: LocalFunctions } = {}
    const postgres = await startPostgres({ dataDirectory: options.dataDirectory, passwordsOf: PASSWORDS_OF })
    started.push(() => postgres.stop())
    const database = await openDatabase(postgres)
    started.push(() => database.close())
    const secretsManager = createSecretsManager({
      log,
      rotate: async (event) => {
        const rotated = await late.functions?.byHandler.migrate.invoke(event)
        if (rotated?.error !== null) throw new Error(rotated?.error.message ?? 'the functions are not there yet')
      },
    })
    createSecrets(secretsManager)
    const elsewhere = options.secretsEndpoint === undefined ? undefined : createRemoteSecrets(options.secretsEndpoint)
    started.push(() => Promise.resolve(elsewhere?.stop()))
    const resourceArn = options.resourceArn ?? RESOURCE_ARN
    const dataApi = createDataApi({
      server: postgres,
      resourceArn,
      readSecret: async (arn) => secretsManager.read(arn) ?? elsewhere?.read(arn),
    })
    started.push(() => dataApi.stop())
    const services = await startServices({
      port: options.port ?? 4566,
      dataApi,
      secretsManager,
      control: (request) => (late.stack === undefined ? Promise.resolve('cut') : control(late.stack, request)),
      resourceOf: (name) => late.plan?.resourceOf(name) ?? name,
      invokeFunction: (name, event) => {
        if (name === 'canary') void late.functions?.byHandler.canary.invoke(event)
        else log(`EventBridge: function ${name} does not exist`)
      },
      onExchange: options.onExchange,
      log,
    })
    started.push(() => services.stop())
    const plan = (late.plan = planResources(config.destinations, services.endpoint.url))
    await createResources(services, plan)
    watchBuses(services, plan.destinations, config.relay.source ?? relaySettings.source.default ?? '')

    const relays = options.relays ?? 1
    const functions = (late.functions = createFunctions({
      endpointUrl: services.endpoint.url,
      resourceArn,
      config,
      destinations: plan.destinations,
      relays,
      log,
    }))
    started.push(() => functions.stop())
    const migrated = await functions.byHandler.migrate.invoke()
    if (migrated.error !== null)
      throw new OutboxError('MigrationFailed', `the outbox was not installed: ${migrated.error.message}`)

    const { relay = 60, monitor = 60, cleanup = 3600 } = options.periods ?? {}
    const stopScheduler = startScheduler([
      ...functions.relays.map((one) => ({
        periodSeconds: relay,
        jitterSeconds: options.relayJitterSeconds,
        invoke: () => one.invoke(),
      })),
      { periodSeconds: monitor, invoke: () => functions.byHandler.monitor.invoke() },
      { periodSeconds: cleanup, invoke: () => functions.byHandler.cleanup.invoke() },
    ])
    started.push(() => {
      stopScheduler()
      return Promise.resolve()
    })

    let stopping: Promise<void> | undefined
    const stack: LocalStack = (late.stack = {
      description: describe(services, plan, resourceArn, postgres.url(DATABASE)),
      faults: services.faults,
      postgres,
      invoke: (handler, event = {}) => functions.byHandler[handler].invoke(event),
      state: async () => ({ calls: services.calls(), relays: relayProcesses(functions), backlog: await database.backlog() }),
      signalRelay(pid, signal) {
        const process = functions.relays.flatMap((one) => one.processes).find((one) => one.pid === pid)
        process?.signal(signal)
        return process === undefined ? 'gone' : 'sent'
      },
      invokeRelay(name) {
        const found = functions.relays.find((one) => one.name === name)
        const names = functions.relays.map((one) => one.name).join(', ')
        if (found === undefined) throw new ConfigurationError('name', `relay is "${name}"; allowed: ${names}`)
        return found.invoke()
      },
      stop: () => (stopping ??= stopAll()),
    })
    return stack
  } catch (error) {
    await stopAll()
    throw error
  }
}

async function createResources({ sqs, sns, eventBridge }: Services, plan: ResourcePlan): Promise<void> {
  for (const queue of Object.values(plan.queues)) await sqs.createQueue(queue)
  for (const [name, topic] of Object.entries(plan.topics)) {
    await sns.subscribe(await sns.createTopic(topic), queueArn(plan.resourceOf(`${name}-subscriber`)))
  }
  for (const [name, bus] of Object.entries(plan.buses)) eventBridge.createBus(bus, queueArn(plan.resourceOf(`${name}-target`)))
}

/** Brings the canaries of each bus back to their function, by the rules that the stack in an account has. */
function watchBuses({ eventBridge }: Services, destinations: Destinations, source: string): void {
  const functionArn = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:canary`
  for (const [index, [name, destination]] of Object.entries(destinations).entries()) {
    if (destination.type !== 'eventbridge') continue
    const pattern = canaryPattern({ source, installation: INSTALLATION, destination: name, format: destination.format })
    eventBridge.createRule(destination.eventBusName, `canary-${index}`, pattern, functionArn)
  }
}

function describe({ endpoint }: Services, plan: ResourcePlan, resourceArn: string, databaseUrl: string): LocalStackDescription {
  const topics = Object.entries(plan.destinations).flatMap(([name, one]) =>
    one.type === 'sns' ? [[name, one.topicArn] as const] : [],
  )
  return {
    ready: true,
    endpoint: endpoint.url,
    region: REGION,
    resourceArn,
    secretArn: loginSecretArn('owner'),
    database: DATABASE,
    databaseUrl,
    eventBusName: Object.values(plan.buses)[0] ?? 'default',
    queues: Object.fromEntries(Object.entries(plan.queues).map(([name, queue]) => [name, localQueueUrl(endpoint.url, queue)])),
    topics: Object.fromEntries(topics),
  }
}

function relayProcesses(functions: LocalFunctions): LocalState['relays'] {
  return functions.relays.flatMap(({ name, processes }) => processes.map(({ pid, invocations }) => ({ name, pid, invocations })))
}
