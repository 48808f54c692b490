import { z } from 'zod'
import type { Faults } from '../faults/faults.js'
import { faultsSchema } from '../faults/rules.js'
import type { InvocationResult } from '../lambda/execution-environment.js'
import type { ServiceRequest, ServiceResponse } from '../service.js'

const HANDLERS = ['relay', 'cleanup', 'monitor', 'migrate', 'canary'] as const
export type HandlerName = (typeof HANDLERS)[number]

/** What `GET /_local/state` answers. */
export interface LocalState {
  /** By `service.Operation`, refused calls included. */
  readonly calls: Readonly<Record<string, number>>
  /** One for each living process: passes overlap, so a relay may have two. */
  readonly relays: readonly { readonly name: string; readonly pid: number; readonly invocations: number }[]
  readonly backlog: { readonly depth: number; readonly failed: number; readonly ageSeconds: number }
}

export interface ControlledStack {
  readonly faults: Pick<Faults, 'set' | 'get' | 'clear'>
  invoke(handler: HandlerName, event: unknown): Promise<InvocationResult>
  state(): Promise<LocalState>
}

/** The control API: what lies under `/_local/`. */
export async function control(stack: ControlledStack, request: ServiceRequest): Promise<ServiceResponse> {
  const path = request.path.split('?', 1)[0] ?? ''
  const route = `${request.method} ${path}`
  if (route === 'GET /_local/state') return json(200, await stack.state())
  if (route === 'GET /_local/faults') return json(200, stack.faults.get())
  if (route === 'DELETE /_local/faults') {
    stack.faults.clear()
    return json(200, stack.faults.get())
  }
  if (route === 'PUT /_local/faults') return setFaults(stack, request)
  if (request.method === 'POST' && path.startsWith('/_local/invoke/'))
    return invoke(stack, path.slice('/_local/invoke/'.length), request)
  return refuse(
    404,
    `${route} does not exist; there are PUT, GET, DELETE /_local/faults, POST /_local/invoke/<handler>, GET /_local/state`,
  )
}

function setFaults(stack: ControlledStack, request: ServiceRequest): ServiceResponse {
  const body = parse(request)
  if (body === undefined)
    return refuse(400, 'the body is not JSON; allowed: {"seed":1,"rules":[{"service":"sqs","fault":{"kind":"throttle"}}]}')
  const checked = faultsSchema.safeParse(body)
  if (!checked.success) return refuse(400, firstProblem(checked.error, body))
  stack.faults.set(checked.data)
  return json(200, stack.faults.get())
}

async function invoke(stack: ControlledStack, name: string, request: ServiceRequest): Promise<ServiceResponse> {
  const handler = HANDLERS.find((one) => one === name)
  if (handler === undefined) return refuse(400, `handler is "${name}"; allowed: ${HANDLERS.join(', ')}`)
  const event = request.body.length === 0 ? {} : parse(request)
  if (event === undefined) return refuse(400, 'the body is not JSON; allowed: the event for the handler, or nothing')
  return json(200, await stack.invoke(handler, event))
}

/** The first thing that is wrong: field, value seen, value allowed. */
function firstProblem(error: z.ZodError, input: unknown): string {
  const [issue] = error.issues
  if (issue === undefined) return 'invalid'
  const extra = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const path = [...issue.path, ...extra]
  const seen = path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], input)
  const text = JSON.stringify(seen) as string | undefined
  const field = path.length === 0 ? 'the body' : z.core.toDotPath(path)
  return `${field} is ${text === undefined ? 'absent' : text.slice(0, 100)}: ${issue.message}`
}

function parse(request: ServiceRequest): unknown {
  try {
    return JSON.parse(request.body.toString('utf8'))
  } catch {
    return undefined
  }
}

function refuse(status: number, error: string): ServiceResponse {
  return json(status, { error })
}

function json(status: number, body: unknown): ServiceResponse {
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
