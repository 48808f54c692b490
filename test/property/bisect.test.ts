import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { publishBisecting } from '../../src/core/bisect.js'
import type { PublishAnswer } from '../../src/core/outcome.js'
import type { Message } from '../../src/core/ports.js'

describe('bisecting', () => {
  it('fails every culprit and nothing else, sends each good message exactly once to effect, and ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 12 }), async (poison) => {
        const messages = poison.map((_, index): Message<number> => ({ eventId: String(index), bytes: 1, entry: index }))
        const arrived: number[] = []
        const publish = (sent: readonly Message<number>[]): Promise<PublishAnswer> => {
          if (sent.some(({ entry }) => poison[entry])) {
            return Promise.resolve({ kind: 'request-fault', code: 'InvalidBatchEntry', reason: 'no' })
          }
          arrived.push(...sent.map(({ entry }) => entry))
          return Promise.resolve({
            kind: 'answered',
            entries: sent.map(({ eventId }) => ({ kind: 'accepted', messageId: eventId })),
          })
        }
        const { answers, requests } = await publishBisecting({ publish }, messages)
        expect(answers.map(({ kind }) => kind)).toEqual(poison.map((bad) => (bad ? 'refused' : 'accepted')))
        expect(arrived).toEqual(messages.map(({ entry }) => entry).filter((entry) => !poison[entry]))
        expect(requests).toBeLessThanOrEqual(Math.max(0, 2 * messages.length - 1))
      }),
    )
  })

  it('gives each message one answer in its place, wherever the destination fails', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 10 }), fc.infiniteStream(fc.nat(3)), async (count, replies) => {
        const messages = Array.from({ length: count }, (_, index): Message<number> => ({
          eventId: `${index}`,
          bytes: 1,
          entry: index,
        }))
        const confirmed = new Set<string>()
        let failed = false
        const publish = (sent: readonly Message<number>[]): Promise<PublishAnswer> => {
          expect(failed).toBe(false)
          const reply = replies.next().value as number
          if (reply === 0) {
            failed = true
            return Promise.resolve({ kind: 'destination-fault', code: 'TimeoutError', reason: 'late', configuration: false })
          }
          if (reply === 1) return Promise.resolve({ kind: 'request-fault', code: 'TooLong', reason: 'no' })
          for (const { eventId } of sent) confirmed.add(eventId)
          return Promise.resolve({
            kind: 'answered',
            entries: sent.map(({ eventId }) => ({ kind: 'accepted', messageId: eventId })),
          })
        }
        const { answers } = await publishBisecting({ publish }, messages)
        expect(answers.length).toBe(count)
        answers.forEach((answer, index) => {
          expect(answer.kind === 'accepted').toBe(confirmed.has(`${index}`))
          if (answer.kind === 'accepted') expect(answer.messageId).toBe(`${index}`)
        })
      }),
    )
  })
})
