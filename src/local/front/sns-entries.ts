import { randomUUID } from 'node:crypto'
import type { ServiceRequest } from '../service.js'
import type { EntryCodec } from './entry-codec.js'
import { errorAnswer, escapeXml, formOf, nameOf, xmlAnswer } from './protocol.js'

const MEMBER = /^PublishBatchRequestEntries\.member\.(\d+)\./

/** One entry of a `PublishBatch` form. */
export interface SnsBatchEntry {
  /** Its number in the form's field names. */
  readonly member: string
  readonly id: string
  readonly message: string
  /** As SNS counts: the message; names, types and values of its attributes. */
  readonly bytes: number
}

/** The entries of a `PublishBatch` request, in the order of their numbers. */
export function snsBatchOf(request: ServiceRequest): readonly SnsBatchEntry[] {
  const form = formOf(request)
  const members = new Set([...form.keys()].flatMap((key) => MEMBER.exec(key)?.[1] ?? []))
  return [...members]
    .sort((a, b) => Number(a) - Number(b))
    .map((member) => {
      const prefix = `PublishBatchRequestEntries.member.${member}.`
      const message = form.get(`${prefix}Message`) ?? ''
      let bytes = Buffer.byteLength(message)
      for (const [name, value] of form) if (name.startsWith(`${prefix}MessageAttributes.`)) bytes += Buffer.byteLength(value)
      return { member, id: form.get(`${prefix}Id`) ?? '', message, bytes }
    })
}

/** `PublishBatch`: answers by entry id, in two lists. */
export const snsBatchEntries: EntryCodec = {
  batch: true,
  entries(request) {
    const resource = nameOf(formOf(request).get('TopicArn'))
    return snsBatchOf(request).map(({ message }) => ({ resource, text: message }))
  },
  without(request, taken) {
    const kept = snsBatchOf(request).flatMap(({ member }, index) => (taken.has(index) ? [] : [member]))
    if (kept.length === 0) return undefined
    // numbered anew: a list with a gap ends there for who reads it one by one
    const form = [...formOf(request)].flatMap(([key, value]): [string, string][] => {
      const member = MEMBER.exec(key)?.[1]
      if (member === undefined) return [[key, value]]
      if (!kept.includes(member)) return []
      return [[key.replace(MEMBER, `PublishBatchRequestEntries.member.${kept.indexOf(member) + 1}.`), value]]
    })
    return { ...request, body: Buffer.from(new URLSearchParams(form).toString()) }
  },
  answer(request, rest, decisions) {
    if (rest !== undefined && rest.status !== 200) return rest
    const entries = snsBatchOf(request)
    let successful = ''
    let failed = ''
    for (const [index, decision] of decisions) {
      const id = `<Id>${escapeXml(entries[index]?.id ?? '')}</Id>`
      if (decision.kind === 'swallow') successful += `<member>${id}<MessageId>${randomUUID()}</MessageId></member>`
      if (decision.kind === 'error') {
        failed +=
          `<member>${id}<Code>${escapeXml(decision.code)}</Code><Message>${escapeXml(decision.message)}</Message>` +
          `<SenderFault>${decision.senderFault}</SenderFault></member>`
      }
    }
    if (rest === undefined) {
      return xmlAnswer('PublishBatch', `<Successful>${successful}</Successful><Failed>${failed}</Failed>`)
    }
    const body = rest.body
      .toString()
      // an empty list may be written as one tag
      .replace(/<(Successful|Failed)\s*\/>/g, '<$1></$1>')
      .replace('</Successful>', () => `${successful}</Successful>`)
      .replace('</Failed>', () => `${failed}</Failed>`)
    return { ...rest, body }
  },
}

/** `Publish`: one message, whose failure is the request's. */
export const snsSingleEntry: EntryCodec = {
  batch: false,
  entries(request) {
    const form = formOf(request)
    return [{ resource: nameOf(form.get('TopicArn')), text: form.get('Message') ?? '' }]
  },
  without: () => undefined,
  answer(_request, _rest, decisions) {
    const decision = decisions.get(0)
    if (decision?.kind !== 'error') return xmlAnswer('Publish', `<MessageId>${randomUUID()}</MessageId>`)
    return errorAnswer('sns', { name: decision.code, status: decision.senderFault ? 400 : 500, message: decision.message })
  },
}
