import type { Endpoint } from '../endpoint/endpoint.js'
import { startEndpoint } from '../endpoint/endpoint.js'
import type { EventBridge, InvokeFunction } from '../eventbridge/eventbridge.js'
import { createEventBridge } from '../eventbridge/eventbridge.js'
import { Faults } from '../faults/faults.js'
import { createFront, type Exchange, type Reply } from '../front/front.js'
import type { LocalService, ServiceRequest } from '../service.js'
import type { Sns } from '../sns/sns.js'
import { createSns } from '../sns/sns.js'
import { createFauxqs } from '../sqs/fauxqs.js'
import type { Sqs } from '../sqs/sqs.js'
import { createSqs } from '../sqs/sqs.js'
import { sts } from '../sts/sts.js'

export interface ServicesOptions {
  /** 0: any free one. */
  readonly port: number
  readonly dataApi: LocalService
  readonly secretsManager: LocalService
  /** Answers what lies under `/_local/`. */
  readonly control: (request: ServiceRequest) => Promise<Reply>
  /** The queue, topic or bus behind a destination's name. */
  readonly resourceOf: (destination: string) => string
  /** For rules of EventBridge whose target is a function. */
  readonly invokeFunction: InvokeFunction
  /** Hears of each request that carried messages, just before its answer leaves. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined
  readonly log: (line: string) => void
}

/** All services behind one endpoint, without database or relays. */
export interface Services {
  readonly endpoint: Endpoint
  readonly faults: Faults
  readonly sqs: Sqs
  readonly sns: Sns
  readonly eventBridge: EventBridge
  /** Calls so far by `service.Operation`. */
  calls(): Readonly<Record<string, number>>
  stop(): Promise<void>
}

/** @throws ConfigurationError if the port is taken. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  const faults = new Faults(options.resourceOf)
  const fauxqs = await createFauxqs()
  const sqs = createSqs(fauxqs)
  const sns = createSns(fauxqs)
  const eventBridge = createEventBridge(sqs, options.invokeFunction, options.log)
  const front = createFront(
    { sqs, sns, events: eventBridge, 'rds-data': options.dataApi, secretsmanager: options.secretsManager, sts },
    faults,
    options.onExchange,
  )
  const endpoint = await startEndpoint(options.port, (request) =>
    request.path.startsWith('/_local/') ? options.control(request) : front.handle(request),
  )
  return {
    endpoint,
    faults,
    sqs,
    sns,
    eventBridge,
    calls: () => front.calls(),
    async stop() {
      await endpoint.stop()
      await fauxqs.stop()
    },
  }
}
