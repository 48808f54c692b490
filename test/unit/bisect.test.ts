import { describe, expect, it } from 'vitest'
import { publishBisecting } from '../../src/core/bisect.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'

const messages = (...ids: readonly string[]): Message<string>[] => ids.map((id) => ({ eventId: id, bytes: 1, entry: id }))
const accepted = (ids: readonly string[]): PublishAnswer => ({
  kind: 'answered',
  entries: ids.map((id) => ({ kind: 'accepted', messageId: id })),
})
const requestFault: PublishAnswer = { kind: 'request-fault', code: 'BatchRequestTooLong', reason: 'too long' }
const down: PublishAnswer = { kind: 'destination-fault', code: 'ECONNRESET', reason: 'reset', configuration: false }

/** A publisher that remembers what it was asked to send. */
function fake(answer: (ids: readonly string[]) => PublishAnswer) {
  const requests: string[] = []
  return {
    requests,
    publish: (sent: readonly Message<string>[]) => {
      const ids = sent.map(({ entry }) => entry)
      requests.push(ids.join(''))
      return Promise.resolve(answer(ids))
    },
  }
}

describe('publishing a request', () => {
  it('takes one request if it is answered', async () => {
    const service = fake(accepted)
    expect(await publishBisecting(service, messages('a', 'b'))).toEqual({
      answers: [
        { kind: 'accepted', messageId: 'a' },
        { kind: 'accepted', messageId: 'b' },
      ],
      requests: 1,
    })
    expect(await publishBisecting(service, [])).toEqual({ answers: [], requests: 0 })
  })

  it('halves a request that is refused whole until the culprit stands alone, and fails only that', async () => {
    const service = fake((ids) => (ids.includes('c') ? requestFault : accepted(ids)))
    const { answers, requests } = await publishBisecting(service, messages('a', 'b', 'c', 'd', 'e'))
    expect(service.requests).toEqual(['abcde', 'abc', 'ab', 'c', 'de'])
    expect(requests).toBe(5)
    expect(answers.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'refused', 'accepted', 'accepted'])
    expect(answers[2]).toEqual({ kind: 'refused', fault: 'event', code: 'BatchRequestTooLong', reason: 'too long' })
  })

  it('keeps what is known when the destination fails in the middle, and sends nothing more', async () => {
    const service = fake((ids) => (ids.length > 2 ? requestFault : ids.includes('c') ? down : accepted(ids)))
    const { answers } = await publishBisecting(service, messages('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'))
    expect(service.requests).toEqual(['abcdefgh', 'abcd', 'ab', 'cd'])
    expect(answers.slice(0, 2).map(({ kind }) => kind)).toEqual(['accepted', 'accepted'])
    expect(answers.slice(2)).toEqual(Array.from({ length: 6 }, () => down))
  })

  it('asks before each request, and leaves unsent what it may not send', async () => {
    const service = fake((ids) => (ids.length > 2 ? requestFault : accepted(ids)))
    let requestsAllowed = 2
    const { answers, requests } = await publishBisecting(service, messages('a', 'b', 'c', 'd'), () => requestsAllowed-- > 0)
    expect(service.requests).toEqual(['abcd', 'ab'])
    expect(requests).toBe(2)
    expect(answers.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'unsent', 'unsent'])
  })

  it('counts an entry that the answer has no word for as missing', async () => {
    const service = fake(() => accepted(['a']))
    const { answers } = await publishBisecting(service, messages('a', 'b'))
    expect(answers.map(({ kind }) => kind)).toEqual(['accepted', 'missing'])
  })
})
