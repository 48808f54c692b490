import type { EntryAnswer, PublishAnswer } from './outcome.js'
import type { Message, Publisher } from './ports.js'

/** A request that failed whole for a reason no event causes. */
export type DestinationFault = Extract<PublishAnswer, { readonly kind: 'destination-fault' }>

/** What is known about one message after its request: `unsent` if `mayStart` forbade the request it would have gone with. */
export type MessageAnswer = EntryAnswer | DestinationFault | { readonly kind: 'unsent' }

/** What became of a batch of messages, one answer each, in the order given. */
export interface Publication {
  readonly answers: readonly MessageAnswer[]
  /** Requests sent: 1, more if the first was refused whole for something in it. */
  readonly requests: number
}

/**
 * Publishes messages as one request, and halves a request that is refused whole because of what is in it, until the culprit
 * stands alone: alone it is refused with fault `event`, and its neighbours are accepted without it. Halves go one after the
 * other, at most `2 * messages - 1` requests in all; after a destination fault nothing more is sent, what is unanswered gets
 * that fault, and what is known stays known.
 *
 * @param mayStart - asked before each request (is the lease still long enough?); default: always
 *
 * @example
 * const { answers } = await publishBisecting(publisher, messages, () => lease.remainingMs() > requestTimeoutMs)
 */
export async function publishBisecting<Entry>(
  publisher: Pick<Publisher<Entry>, 'publish'>,
  messages: readonly Message<Entry>[],
  mayStart: () => boolean = () => true,
): Promise<Publication> {
  const answers: MessageAnswer[] = []
  const open: (readonly Message<Entry>[])[] = messages.length === 0 ? [] : [messages]
  let requests = 0
  let stop: MessageAnswer | null = null

  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (stop === null && !mayStart()) stop = { kind: 'unsent' }
    if (stop !== null) {
      answers.push(...fill(part.length, stop))
      continue
    }
    requests += 1
    const answer = await publishPart(publisher, part)
    switch (answer.kind) {
      case 'answered':
        answers.push(...part.map((_, index) => answer.entries[index] ?? { kind: 'missing' as const }))
        break
      case 'destination-fault':
        stop = answer
        answers.push(...fill(part.length, answer))
        break
      case 'request-fault':
        if (part.length === 1) {
          answers.push({ kind: 'refused', fault: 'event', code: answer.code, reason: answer.reason })
        } else {
          const middle = Math.ceil(part.length / 2)
          // a stack: the front half is sent next, so answers come in the order of the messages
          open.push(part.slice(middle), part.slice(0, middle))
        }
        break
    }
  }
  return { answers, requests }
}

/** A publisher that throws meets a fault of this program: found as a refusal is, by halving, so that the others are sent. */
async function publishPart<Entry>(
  publisher: Pick<Publisher<Entry>, 'publish'>,
  part: readonly Message<Entry>[],
): Promise<PublishAnswer> {
  try {
    return await publisher.publish(part)
  } catch (error) {
    const fault = { code: 'EventFault', reason: error instanceof Error ? `${error.name}: ${error.message}` : 'unknown' }
    if (part.length > 1) return { kind: 'request-fault', ...fault }
    return { kind: 'answered', entries: [{ kind: 'refused', fault: 'transient', ...fault }] }
  }
}

function fill(length: number, answer: MessageAnswer): MessageAnswer[] {
  return Array.from({ length }, () => answer)
}
