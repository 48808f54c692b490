import type { Entry, EntryCodec } from './entry-codec.js'
import { eventsEntries } from './events-entries.js'
import type { ServiceCall } from './protocol.js'
import { formOf, jsonOf, nameOf, queueNameOf, text } from './protocol.js'
import { snsBatchEntries, snsSingleEntry } from './sns-entries.js'
import { sqsBatchEntries, sqsSingleEntry } from './sqs-entries.js'

const CODECS: Readonly<Record<string, EntryCodec>> = {
  'sqs.SendMessageBatch': sqsBatchEntries,
  'sqs.SendMessage': sqsSingleEntry,
  'sns.PublishBatch': snsBatchEntries,
  'sns.Publish': snsSingleEntry,
  'events.PutEvents': eventsEntries,
}

/** The codec of an operation that sends messages; undefined for all others. */
export function codecOf(call: ServiceCall): EntryCodec | undefined {
  return CODECS[`${call.service}.${call.operation}`]
}

/** What a call is about: its messages, or one pseudo-entry with its resource and its text. */
export function entriesOf(call: ServiceCall): readonly Entry[] {
  const codec = codecOf(call)
  return codec === undefined ? [wholeCall(call)] : codec.entries(call.request)
}

function wholeCall({ service, request }: ServiceCall): Entry {
  if (service === 'rds-data') return { resource: '', text: text(jsonOf(request)?.['sql']) }
  const body = request.body.toString('utf8')
  if (service === 'secretsmanager' || service === 'sts') return { resource: '', text: body }
  if (service === 'sns') return { resource: nameOf(formOf(request).get('TopicArn')), text: body }
  const json = jsonOf(request)
  const resource = service === 'sqs' ? queueNameOf(json?.['QueueUrl']) : nameOf(json?.['EventBusName'])
  return { resource, text: body }
}
