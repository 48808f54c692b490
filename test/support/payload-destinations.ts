import type { Message } from '@aws-sdk/client-sqs'

/** A destination of a local stack without a configuration file, and the queue in which its messages can be seen. */
export interface PayloadDestination {
  readonly name: string
  readonly readFrom: string
  /** Bytes of the largest message. */
  readonly maxBytes: number
  /** What a message counts against `maxBytes`, as the service has it. */
  bytesOf(message: Message): number
  /** The CloudEvent in a message, as text. */
  textOf(message: Message): string
}

const queueLike = { textOf: ({ Body }: Message) => Body ?? '', bytesOf: (message: Message) => bodyAndAttributes(message) }

/** Add a destination here, and every size is tried on it. */
export const PAYLOAD_DESTINATIONS: readonly PayloadDestination[] = [
  { name: 'queue', readFrom: 'queue', maxBytes: 1_048_576, ...queueLike },
  { name: 'fifo', readFrom: 'fifo', maxBytes: 1_048_576, ...queueLike },
  { name: 'bus', readFrom: 'bus-target', maxBytes: 1_000_000, textOf: detailOf, bytesOf: entryBytes },
  { name: 'topic', readFrom: 'topic-subscriber', maxBytes: 262_144, ...queueLike },
]

function bodyAndAttributes({ Body = '', MessageAttributes = {} }: Message): number {
  const attributes = Object.entries(MessageAttributes).flatMap(([name, value]) => [name, value.DataType, value.StringValue])
  return [Body, ...attributes].reduce((bytes, text) => bytes + Buffer.byteLength(text ?? ''), 0)
}

/** The bus puts the detail, as it came, at the end of an envelope of its own. */
function detailOf({ Body = '' }: Message): string {
  return Body.slice(Body.indexOf(',"detail":') + ',"detail":'.length, -1)
}

/** Source, detail type and detail, and 14 for the time. */
function entryBytes(message: Message): number {
  const detail = detailOf(message)
  const { source, type } = JSON.parse(detail) as { source: string; type: string }
  return [source, type, detail].reduce((bytes, text) => bytes + Buffer.byteLength(text), 14)
}
