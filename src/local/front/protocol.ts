import { randomUUID } from 'node:crypto'
import type { ServiceRequest, ServiceResponse } from '../service.js'

export const SERVICES = ['sqs', 'sns', 'events', 'rds-data', 'secretsmanager', 'sts'] as const
export type ServiceName = (typeof SERVICES)[number]

/** Every queue, topic and bus of the local stack belongs to this account and region, whatever the caller's credentials say. */
export const ACCOUNT = '000000000000'
export const REGION = 'us-east-1'

/** One request from outside, and which operation of which service it is. */
export interface ServiceCall {
  readonly service: ServiceName
  readonly operation: string
  readonly request: ServiceRequest
}

const DATA_API_OPERATIONS: Readonly<Record<string, string>> = {
  '/Execute': 'ExecuteStatement',
  '/BatchExecute': 'BatchExecuteStatement',
  '/BeginTransaction': 'BeginTransaction',
  '/CommitTransaction': 'CommitTransaction',
  '/RollbackTransaction': 'RollbackTransaction',
  '/ExecuteSql': 'ExecuteSql',
}

const FORM_VERSIONS: Readonly<Record<string, 'sns' | 'sts'>> = { '2010-03-31': 'sns', '2011-06-15': 'sts' }

/** Which operation a request calls; undefined if none of the services here knows it. */
export function identify(request: ServiceRequest): ServiceCall | undefined {
  const path = request.path.split('?', 1)[0] ?? ''
  const dataApi = DATA_API_OPERATIONS[path]
  if (dataApi !== undefined) return { service: 'rds-data', operation: dataApi, request }

  const [target, operation] = (request.headers['x-amz-target'] ?? '').split('.')
  if (target === 'AmazonSQS' && operation !== undefined) return { service: 'sqs', operation, request }
  if (target === 'AWSEvents' && operation !== undefined) return { service: 'events', operation, request }
  if (target === 'secretsmanager' && operation !== undefined) return { service: 'secretsmanager', operation, request }

  if ((request.headers['content-type'] ?? '').includes('x-www-form-urlencoded')) {
    const form = formOf(request)
    const action = form.get('Action')
    // each has had one version ever; SQS, which also speaks forms, has another
    const service = FORM_VERSIONS[form.get('Version') ?? '']
    if (action !== null && service !== undefined) return { service, operation: action, request }
  }
  return undefined
}

/** The JSON object in a request's body; undefined if there is none. */
export function jsonOf(request: ServiceRequest): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(request.body.toString('utf8'))
    return isObject(body) ? body : undefined
  } catch {
    return undefined
  }
}

export function formOf(request: ServiceRequest): URLSearchParams {
  return new URLSearchParams(request.body.toString('utf8'))
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `value` if it is a string, else ''. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The queue a URL names, whatever its host; '' if it names none of this account's. */
export function queueNameOf(queueUrl: unknown): string {
  if (!URL.canParse(text(queueUrl))) return ''
  const [account, name, ...rest] = new URL(text(queueUrl)).pathname.split('/').slice(1)
  return account === ACCOUNT && name !== undefined && rest.length === 0 ? name : ''
}

/** The last part of an ARN, or a plain name as it is. */
export function nameOf(arnOrName: unknown): string {
  return text(arnOrName).split(/[:/]/).at(-1) ?? ''
}

const CONTENT_TYPES: Readonly<Record<ServiceName, string>> = {
  sqs: 'application/x-amz-json-1.0',
  sns: 'text/xml',
  events: 'application/x-amz-json-1.1',
  'rds-data': 'application/json',
  secretsmanager: 'application/x-amz-json-1.1',
  sts: 'text/xml',
}

const XML_NAMESPACES = {
  sns: 'http://sns.amazonaws.com/doc/2010-03-31/',
  sts: 'https://sts.amazonaws.com/doc/2011-06-15/',
} as const

/** A successful answer with a JSON body. */
export function jsonAnswer(service: ServiceName, body: unknown): ServiceResponse {
  return { status: 200, headers: answerHeaders(service), body: JSON.stringify(body) }
}

/** A successful answer of a service whose protocol is XML. */
export function xmlAnswer(operation: string, result: string, service: 'sns' | 'sts' = 'sns'): ServiceResponse {
  const body =
    `<${operation}Response xmlns="${XML_NAMESPACES[service]}"><${operation}Result>${result}</${operation}Result>` +
    `<ResponseMetadata><RequestId>${randomUUID()}</RequestId></ResponseMetadata></${operation}Response>`
  return { status: 200, headers: answerHeaders(service), body }
}

export interface ServiceFault {
  readonly name: string
  readonly status: number
  readonly message: string
}

/** An error as the service would word it on the wire, so that every SDK decodes its name. */
export function errorAnswer(service: ServiceName, fault: ServiceFault): ServiceResponse {
  const side = fault.status < 500 ? 'Sender' : 'Receiver'
  if (service === 'sns' || service === 'sts') {
    const body =
      `<ErrorResponse xmlns="${XML_NAMESPACES[service]}"><Error><Type>${side}</Type><Code>${escapeXml(fault.name)}</Code>` +
      `<Message>${escapeXml(fault.message)}</Message></Error><RequestId>${randomUUID()}</RequestId></ErrorResponse>`
    return { status: fault.status, headers: answerHeaders(service), body }
  }
  const type = service === 'sqs' ? `com.amazonaws.sqs#${fault.name}` : fault.name
  return {
    status: fault.status,
    headers: {
      ...answerHeaders(service),
      'x-amzn-errortype': fault.name,
      ...(service === 'sqs' ? { 'x-amzn-query-error': `${fault.name};${side}` } : {}),
    },
    body: JSON.stringify({ __type: type, message: fault.message }),
  }
}

export function escapeXml(value: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }
  return value.replace(/[&<>"']/g, (char) => entities[char] ?? char)
}

function answerHeaders(service: ServiceName): Record<string, string> {
  return { 'content-type': CONTENT_TYPES[service], 'x-amzn-requestid': randomUUID() }
}
