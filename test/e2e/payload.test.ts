import type { Message } from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PAYLOAD_DESTINATIONS, type PayloadDestination } from '../support/payload-destinations.js'
import { startPayloadStack, type EventState, type PayloadStack, type SizedEvents } from '../support/payload-stack.js'
import { asSent, headersOf, payloadOf, type Alphabet } from '../support/payloads.js'

/** Around what comes with a claim (48,000), the limits of the Data API's row and of a topic, and the largest that is promised. */
const SIZES = [1, 47_999, 48_000, 48_001, 65_536, 262_144, 1_000_000]
const ALPHABETS = ['ascii', 'four-byte'] as const
/** What a message may have beside its payload here, 8 kB of headers included. No size lies so close below a limit. */
const ENVELOPE_BYTES = 20_000

/** Of the sizes up to 65,536; with the few of the larger ones 67 MB of payloads in all. 30,000 make 500 of the larger ones. */
const MANY = Number(process.env['OUTBOX_PAYLOAD_EVENTS'] ?? 500)
/** At least one of each alphabet to each destination. */
const FEW = Math.max(2 * PAYLOAD_DESTINATIONS.length, Math.floor(MANY / 60))

interface Case extends SizedEvents {
  readonly bytes: number
}

const sized = (bytes: number, alphabet: Alphabet, count: number, headers?: string): Case => ({
  type: `Sized.${bytes}.${alphabet}`,
  payload: payloadOf(bytes, alphabet),
  bytes,
  count,
  ...(headers === undefined ? {} : { headers }),
})

const fits = ({ maxBytes }: PayloadDestination, bytes: number) => bytes <= maxBytes - ENVELOPE_BYTES

describe('a payload of any size', () => {
  let outbox: PayloadStack
  beforeAll(async () => {
    outbox = await startPayloadStack()
  }, 60_000)
  beforeEach(() => outbox.clear())
  afterAll(() => outbox.stop())

  /** Every event of `cases` has arrived as it was written, or failed with the limit's number; nothing else has happened. */
  async function verify(cases: readonly Case[]): Promise<void> {
    const states = await outbox.states()
    for (const [place, destination] of PAYLOAD_DESTINATIONS.entries()) {
      const expected: Record<string, number> = {}
      for (const one of cases) {
        const share = Math.max(0, Math.ceil((one.count - place) / PAYLOAD_DESTINATIONS.length))
        if (share > 0 && fits(destination, one.bytes)) expected[one.type] = share
        const failed = states.filter(
          ({ type, destination: to, status }) => type === one.type && to === destination.name && status === 'failed',
        )
        expect([one.type, destination.name, failed.length]).toEqual([
          one.type,
          destination.name,
          fits(destination, one.bytes) ? 0 : share,
        ])
        for (const state of failed) expect(state).toEqual(tooLarge(destination))
      }
      const messages = await outbox.take(destination)
      expect(tally(messages.map((message) => typeOf(destination, message)))).toEqual(expected)
      const byType = new Map(cases.map((one) => [one.type, one]))
      const wrong = messages.filter((message) => !isVerbatim(destination, message, byType.get(typeOf(destination, message))!))
      expect(wrong.map((message) => typeOf(destination, message))).toEqual([])
    }
  }

  describe('alone', () => {
    it.each(
      SIZES.flatMap((bytes) => (bytes === 1 ? [[bytes, 'ascii'] as const] : ALPHABETS.map((one) => [bytes, one] as const))),
    )(
      'of %i bytes (%s) arrives at each destination byte for byte, or fails with a reason that names the limit',
      async (bytes, alphabet) => {
        const alone = sized(bytes, alphabet, PAYLOAD_DESTINATIONS.length)
        await outbox.write([alone])
        expect(await outbox.relay()).toEqual({ errors: [], oversizeClaims: 0 })
        await verify([alone])
      },
    )
  })

  describe('many at a time, each with 8 kB of headers, among small events of ordering keys', () => {
    it.each([
      [`${MANY} of 1 byte`, [[1, MANY]]],
      [
        `${MANY} around what comes with a claim`,
        [
          [47_999, MANY / 3],
          [48_000, MANY / 3],
          [48_001, MANY / 3],
        ],
      ],
      [`${MANY} of 65,536 bytes`, [[65_536, MANY]]],
      [
        `${FEW} of 262,144 and ${FEW} of 1,000,000 bytes`,
        [
          [262_144, FEW],
          [1_000_000, FEW],
        ],
      ],
    ] as [string, [number, number][]][])(
      '%s arrive or fail visibly, and hold up none of the small ones',
      async (_, sizes) => {
        const headers = headersOf(8192)
        const large = sizes.flatMap(([bytes, count]) => {
          const alphabets = bytes === 1 ? (['ascii'] as const) : ALPHABETS
          return alphabets.map((alphabet) => sized(bytes, alphabet, Math.ceil(count / alphabets.length), headers))
        })
        const small = (type: string): Case => ({ type, payload: '{"small":true}', bytes: 14, count: 50, orderingKey: 'key-' })
        const cases = [small('Small.before'), ...large, small('Small.after')]
        await outbox.write(cases)
        expect(await outbox.relay()).toEqual({ errors: [], oversizeClaims: 0 })
        await verify(cases)
        // 2 minutes with 30,000, which makes 630 MB of the largest
      },
      600_000,
    )
  })

  describe.each(PAYLOAD_DESTINATIONS)('at the limit of $name', (destination) => {
    it('goes if its message has exactly the limit, and with one byte more fails with a reason that names it', async () => {
      const type = 'AtTheLimit'
      await outbox.write([{ type, payload: '1', count: 1 }], [destination])
      await outbox.relay()
      const [smallest] = await outbox.take(destination)
      const most = destination.maxBytes - destination.bytesOf(smallest!) + 1
      await outbox.clear()

      const payload = payloadOf(most, 'ascii')
      await outbox.write([{ type, payload, count: 1 }], [destination])
      await outbox.write([{ type: 'AboveTheLimit', payload: payloadOf(most - 2, 'ascii'), count: 1 }], [destination])
      await outbox.write(
        [{ type: 'PayloadAboveTheLimit', payload: payloadOf(destination.maxBytes + 1, 'ascii'), count: 1 }],
        [destination],
      )
      await outbox.relay()
      const messages = await outbox.take(destination)
      expect(messages.map((message) => destination.bytesOf(message))).toEqual([destination.maxBytes])
      expect(isVerbatim(destination, messages[0]!, { payload })).toBe(true)
      const failed = (await outbox.states()).filter(({ status }) => status === 'failed')
      expect(failed.map((state) => state.type).sort()).toEqual(['AboveTheLimit', 'PayloadAboveTheLimit'])
      for (const state of failed) expect(state).toEqual(tooLarge(destination))
    })
  })
})

function isVerbatim(destination: PayloadDestination, message: Message, { payload }: Pick<SizedEvents, 'payload'>): boolean {
  return destination.textOf(message).endsWith(`,"data":${asSent(payload)}}`)
}

function typeOf(destination: PayloadDestination, message: Message): string {
  return /"type":"([^"]*)"/.exec(destination.textOf(message))?.[1] ?? ''
}

function tooLarge({ name, maxBytes }: PayloadDestination): EventState {
  return {
    type: expect.any(String) as string,
    destination: name,
    status: 'failed',
    code: expect.stringMatching(/TooLarge$/) as string,
    error: expect.stringMatching(new RegExp(`^the (payload|message) has \\d+ bytes, .*takes ${maxBytes}\\b`)) as string,
  }
}

function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
