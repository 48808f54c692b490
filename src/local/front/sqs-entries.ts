import { createHash, randomUUID } from 'node:crypto'
import type { ServiceRequest } from '../service.js'
import type { Decision, EntryCodec } from './entry-codec.js'
import { errorAnswer, isObject, jsonAnswer, jsonOf, queueNameOf, text } from './protocol.js'

/** `SendMessageBatch`: answers by entry id, in two lists. */
export const sqsBatchEntries: EntryCodec = {
  batch: true,
  entries(request) {
    const resource = queueNameOf(jsonOf(request)?.['QueueUrl'])
    return batchOf(request).map((entry) => ({ resource, text: text(entry['MessageBody']) }))
  },
  without(request, taken) {
    const left = batchOf(request).filter((_entry, index) => !taken.has(index))
    return left.length === 0 ? undefined : withBody(request, { ...jsonOf(request), Entries: left })
  },
  answer(request, rest, decisions) {
    if (rest !== undefined && rest.status !== 200) return rest
    const entries = batchOf(request)
    const answered =
      rest === undefined ? {} : (JSON.parse(rest.body.toString()) as { Successful?: unknown[]; Failed?: unknown[] })
    const successful = [...(answered.Successful ?? [])]
    const failed = [...(answered.Failed ?? [])]
    for (const [index, decision] of decisions) {
      const entry = entries[index] ?? {}
      if (decision.kind === 'error') failed.push({ Id: entry['Id'], ...failure(decision) })
      if (decision.kind === 'swallow') successful.push({ Id: entry['Id'], ...success(entry) })
    }
    // as on AWS, a list without members is left out
    return jsonAnswer('sqs', {
      ...(successful.length > 0 ? { Successful: successful } : {}),
      ...(failed.length > 0 ? { Failed: failed } : {}),
    })
  },
}

/** `SendMessage`: one message, whose failure is the request's. */
export const sqsSingleEntry: EntryCodec = {
  batch: false,
  entries(request) {
    const body = jsonOf(request) ?? {}
    return [{ resource: queueNameOf(body['QueueUrl']), text: text(body['MessageBody']) }]
  },
  without: () => undefined,
  answer(request, _rest, decisions) {
    const decision = decisions.get(0)
    if (decision?.kind !== 'error') return jsonAnswer('sqs', success(jsonOf(request) ?? {}))
    return errorAnswer('sqs', { name: decision.code, status: decision.senderFault ? 400 : 500, message: decision.message })
  },
}

/** The entries of a `SendMessageBatch` request. */
export function batchOf(request: ServiceRequest): readonly Record<string, unknown>[] {
  const entries = jsonOf(request)?.['Entries']
  return Array.isArray(entries) ? entries.filter(isObject) : []
}

export function withBody(request: ServiceRequest, body: unknown): ServiceRequest {
  return { ...request, body: Buffer.from(JSON.stringify(body)) }
}

function failure(decision: Extract<Decision, { kind: 'error' }>) {
  return { Code: decision.code, Message: decision.message, SenderFault: decision.senderFault }
}

/** What SQS answers for a message it took; the SDKs compare the digests with their own. */
function success(entry: Readonly<Record<string, unknown>>) {
  const attributes = isObject(entry['MessageAttributes']) ? entry['MessageAttributes'] : {}
  return {
    MessageId: randomUUID(),
    MD5OfMessageBody: createHash('md5').update(text(entry['MessageBody'])).digest('hex'),
    ...(Object.keys(attributes).length > 0 ? { MD5OfMessageAttributes: attributesDigest(attributes) } : {}),
    ...(entry['MessageGroupId'] === undefined ? {} : { SequenceNumber: Date.now().toString().padStart(20, '0') }),
  }
}

/** SQS's digest of message attributes: by name, each part with its length before it, 1 for text and 2 for bytes. */
function attributesDigest(attributes: Readonly<Record<string, unknown>>): string {
  const digest = createHash('md5')
  const part = (bytes: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    digest.update(length).update(bytes)
  }
  for (const name of Object.keys(attributes).sort()) {
    const attribute = attributes[name]
    if (!isObject(attribute)) continue
    const type = text(attribute['DataType'])
    const binary = type.startsWith('Binary')
    part(Buffer.from(name))
    part(Buffer.from(type))
    digest.update(Buffer.from([binary ? 2 : 1]))
    part(binary ? Buffer.from(text(attribute['BinaryValue']), 'base64') : Buffer.from(text(attribute['StringValue'])))
  }
  return digest.digest('hex')
}
