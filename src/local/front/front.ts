import { setTimeout as sleep } from 'node:timers/promises'
import type { Faults } from '../faults/faults.js'
import type { LocalService, ServiceRequest, ServiceResponse } from '../service.js'
import { codecOf, entriesOf } from './entries.js'
import type { ServiceCall, ServiceName } from './protocol.js'
import { errorAnswer, identify } from './protocol.js'

/** What becomes of a connection: an answer, or it is cut. */
export type Reply = ServiceResponse | 'cut'

/** The one door to all services: recognises them, counts their calls, lets faults happen. */
export interface Front {
  handle(request: ServiceRequest): Promise<Reply>
  /** Calls so far by `service.Operation`, refused ones included. */
  calls(): Readonly<Record<string, number>>
}

/** A request that carried messages, and how it was answered. */
export interface Exchange {
  readonly call: ServiceCall
  /** What the service, or a fault in its place, said; null if the request had no effect and no answer. */
  readonly answer: ServiceResponse | null
  /** Whether the answer left: a fault may have cut the connection. */
  readonly answered: boolean
}

/** @param onExchange - hears of each request that carried messages, just before its answer leaves. Default: nobody */
export function createFront(
  services: Readonly<Record<ServiceName, LocalService>>,
  faults: Faults,
  onExchange: (exchange: Exchange) => void = () => undefined,
): Front {
  const calls = new Map<string, number>()

  async function withFaults(call: ServiceCall): Promise<Reply> {
    const codec = codecOf(call)
    const takes = codec === undefined ? 'none' : codec.batch ? 'batch' : 'single'
    const plan = faults.plan({ ...call, entries: entriesOf(call), takes })
    const reply = (answer: ServiceResponse | null, answered: boolean): Reply => {
      if (codec !== undefined) onExchange({ call, answer, answered })
      return answered && answer !== null ? answer : 'cut'
    }

    if (plan.latencyMs > 0) await sleep(plan.latencyMs)
    if (plan.refusal === 'reset') return reply(null, false)
    if (plan.refusal !== undefined) return reply(errorAnswer(call.service, plan.refusal), true)

    const service = services[call.service]
    let answer: ServiceResponse
    if (codec === undefined || plan.decisions.size === 0) {
      answer = await service.handle(call.request)
    } else {
      const rest = codec.without(call.request, new Set(plan.decisions.keys()))
      answer = codec.answer(call.request, rest === undefined ? undefined : await service.handle(rest), plan.decisions)
    }
    return reply(answer, !plan.dropReply)
  }

  return {
    async handle(request) {
      const call = identify(request)
      if (call === undefined) {
        const message = `nothing here serves ${request.method} ${request.path}: only RDS Data API, SQS (JSON protocol), SNS, EventBridge, Secrets Manager, STS and /_local/`
        return { status: 404, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message }) }
      }
      const name = `${call.service}.${call.operation}`
      calls.set(name, (calls.get(name) ?? 0) + 1)
      return withFaults(call)
    },
    calls: () => Object.fromEntries([...calls].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}
