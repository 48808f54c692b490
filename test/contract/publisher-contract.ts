import { afterAll, beforeAll, describe, expect, it as vitestIt } from 'vitest'
import { pack } from '../../src/core/batching.js'
import { publishBisecting, type MessageAnswer } from '../../src/core/bisect.js'
import type { MessageFormat } from '../../src/core/destination.js'
import type { OutboundEvent } from '../../src/core/event.js'
import type { Message, Publisher } from '../../src/core/ports.js'
import type { FaultSetting } from '../../src/local/faults/rules.js'
import {
  findProvider,
  startDestinationServices,
  type DestinationServices,
  type ProviderName,
} from '../support/destination-services.js'
import { outboundEvent } from '../support/outbound-event.js'

/** One message as a consumer finds it. */
export interface Arrival {
  readonly eventId: string
  /** What the publisher's text became. */
  readonly text: string
}

/** A destination of its own with a publisher for it, and a look at what arrives there. */
export interface PublisherSubject {
  readonly service: FaultSetting['rules'][number]['service']
  /** A request of which the service says that its content is at fault. */
  readonly requestFault: { readonly name: string; readonly status: number }
  publisher(format?: MessageFormat): Publisher
  /** Everything that has arrived since the last call. */
  arrived(): Promise<readonly Arrival[]>
}

/** Who serves in this run. */
export const provider = await findProvider()

/** Promises that others' emulators are known not to keep, by test, with what they do instead. */
export type KnownDifferences = Partial<Record<ProviderName, Readonly<Record<string, string>>>>

/** What every publisher promises, whatever the destination: run against the real thing, or what stands in for it locally. */
export function publisherContract(
  name: string,
  open: (services: DestinationServices, id: string) => Promise<PublisherSubject>,
  differences: KnownDifferences = {},
): void {
  const known = differences[provider.name] ?? {}
  /** A promise; where it is known not to be kept, the test is named so, and is red as soon as it is kept after all. */
  const it = (promise: string, test: () => Promise<void>): void => {
    const difference = known[promise]
    if (difference === undefined) vitestIt(promise, test)
    else vitestIt.fails(`${promise}: not on ${provider.name}, ${difference}`, test)
  }

  describe(`the publisher for ${name}, served by ${provider.name}`, () => {
    let services: DestinationServices
    let opened = 0

    beforeAll(async () => {
      services = await startDestinationServices(provider)
    })
    afterAll(async () => services.stop())

    const fresh = async () => open(services, `destination-${opened++}`)
    const faulty = async (
      subject: PublisherSubject,
      rule: Omit<FaultSetting['rules'][number], 'service'>,
      use: () => Promise<void>,
    ) => {
      services.faults.set({ rules: [{ ...rule, service: subject.service }] })
      try {
        await use()
      } finally {
        services.faults.clear()
      }
    }

    it('delivers what it says was accepted, a full request of entries at once, with an id of the broker for each', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      const events = named(publisher.limits.maxEntries)
      const answer = await publisher.publish(prepareAll(publisher, events))
      const entries = answer.kind === 'answered' ? answer.entries : []
      expect(kinds(entries)).toEqual(events.map(() => 'accepted'))
      expect(new Set(entries.map((entry) => entry.kind === 'accepted' && entry.messageId)).size).toBe(events.length)
      expect(sorted(await subject.arrived())).toEqual(ids(events))
    })

    it('prepares messages of any size that go out in packed requests without one that is too long', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      const { maxBytes } = publisher.limits
      const small = Array.from({ length: 25 }, (_, index) => Math.floor((index * maxBytes) / 26) % Math.floor(maxBytes / 3))
      const sizes = [...small, Math.floor(maxBytes * 0.9), 1, Math.floor(maxBytes * 0.99)]
      const events = sizes.map((size, index) =>
        outboundEvent({ id: `event-${index}`, payload: JSON.stringify('é'.repeat(size / 2)) }),
      )
      let queue = prepareAll(publisher, events).map((message) => ({ message }))
      while (queue.length > 0) {
        const request = pack(queue, publisher.limits)
        const answer = await publisher.publish(request.map(({ message }) => message))
        expect(answer.kind === 'answered' ? kinds(answer.entries) : answer).toEqual(request.map(() => 'accepted'))
        queue = queue.filter((item) => !request.includes(item))
      }
      expect(sorted(await subject.arrived())).toEqual(ids(events))
    })

    it('carries a payload verbatim, in both formats, and what destinations forbid as escapes', async () => {
      const subject = await fresh()
      const payload = '{ "z":1, "a":9007199254740993,\t"a":1.10, "escaped":"\\u0041", "pair":"😀", "forbidden":"\uFFFE\uFFFF" }'
      const arrives = payload.replace('\uFFFE\uFFFF', '\\ufffe\\uffff')
      for (const [format, text] of [
        ['raw', (whole: string) => whole],
        ['cloudevents', (whole: string) => whole.slice(whole.indexOf('"data":') + '"data":'.length, -1)],
      ] as const) {
        const publisher = subject.publisher(format)
        await publisher.publish(prepareAll(publisher, [outboundEvent({ payload })]))
        const [arrival] = await subject.arrived()
        expect(text(arrival!.text)).toBe(arrives)
      }
    })

    it('lets consumers find the event id in both formats, the same on every repeat', async () => {
      const subject = await fresh()
      for (const format of ['raw', 'cloudevents'] as const) {
        const publisher = subject.publisher(format)
        for (const repeat of [0, 1]) {
          await publisher.publish(prepareAll(publisher, [outboundEvent({ id: 'event-1', attempts: repeat })]))
          expect(await subject.arrived()).toMatchObject([{ eventId: 'event-1' }])
        }
      }
    })

    it('tells a refused entry from its accepted neighbours, and which it is', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      await faulty(subject, { match: 'event-1', fault: { kind: 'entry-error', code: 'InternalFailure' } }, async () => {
        const answer = await publisher.publish(prepareAll(publisher, named(3)))
        expect(answer).toMatchObject({
          entries: [{ kind: 'accepted' }, { kind: 'refused', fault: 'transient', code: 'InternalFailure' }, { kind: 'accepted' }],
        })
      })
      expect(sorted(await subject.arrived())).toEqual(['event-0', 'event-2'])
    })

    it('calls an entry that the answer says nothing of missing, never accepted', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      await faulty(subject, { match: 'event-0', fault: { kind: 'entry-missing' } }, async () => {
        const answer = await publisher.publish(prepareAll(publisher, named(3)))
        expect(answer.kind === 'answered' && kinds(answer.entries)).toEqual(['missing', 'accepted', 'accepted'])
      })
      expect(sorted(await subject.arrived())).toEqual(['event-1', 'event-2'])
    })

    it('finds the culprit of a request that is refused whole, and delivers its neighbours once', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      await faulty(subject, { match: 'event-6', fault: { kind: 'error', ...subject.requestFault } }, async () => {
        const { answers } = await publishBisecting(publisher, prepareAll(publisher, named(10)))
        expect(kinds(answers)).toEqual(Array.from({ length: 10 }, (_, index) => (index === 6 ? 'refused' : 'accepted')))
        // an SDK may put its suffix after the name
        const code = expect.stringMatching(new RegExp(`^${subject.requestFault.name}(Exception)?$`)) as string
        expect(answers[6]).toMatchObject({ fault: 'event', code })
      })
      expect(sorted(await subject.arrived())).toEqual(ids(named(10)).filter((id) => id !== 'event-6'))
    })

    vitestIt.each([
      [{ kind: 'throttle' }, false],
      [{ kind: 'error', name: 'InternalFailure', status: 500 }, false],
      [{ kind: 'reset' }, false],
      [{ kind: 'error', name: 'AccessDeniedException', status: 400 }, true],
      [{ kind: 'error', name: 'KmsDisabled', status: 400 }, true],
    ] as const)('calls %j the fault of the destination; nothing arrives', async (fault, configuration) => {
      const subject = await fresh()
      const publisher = subject.publisher()
      await faulty(subject, { fault }, async () => {
        expect(await publisher.publish(prepareAll(publisher, named(3)))).toMatchObject({
          kind: 'destination-fault',
          configuration,
        })
        // sent once: it is the relay that decides about retries
        expect(services.faults.get().rules).toMatchObject([{ hits: 1 }])
      })
      expect(await subject.arrived()).toEqual([])
    })

    it('does not know what arrived when the reply is lost', async () => {
      const subject = await fresh()
      const publisher = subject.publisher()
      await faulty(subject, { fault: { kind: 'drop-reply' } }, async () => {
        expect(await publisher.publish(prepareAll(publisher, named(2)))).toMatchObject({
          kind: 'destination-fault',
          configuration: false,
        })
      })
      expect(sorted(await subject.arrived())).toEqual(['event-0', 'event-1'])
    })

    it('refuses to prepare what exceeds a request', async () => {
      const publisher = (await fresh()).publisher()
      const payload = JSON.stringify('x'.repeat(publisher.limits.maxBytes))
      expect(publisher.prepare(outboundEvent({ payload }))).toMatchObject({ ok: false, code: 'TooLarge' })
    })
  })
}

const named = (count: number): OutboundEvent[] =>
  Array.from({ length: count }, (_, index) => outboundEvent({ id: `event-${index}` }))
const ids = (events: readonly OutboundEvent[]): string[] => events.map(({ id }) => id).sort()
const sorted = (arrivals: readonly Arrival[]): string[] => arrivals.map(({ eventId }) => eventId).sort()
const kinds = (answers: readonly MessageAnswer[]): string[] => answers.map(({ kind }) => kind)

function prepareAll(publisher: Publisher, events: readonly OutboundEvent[]): Message[] {
  return events.map((event) => {
    const preparation = publisher.prepare(event)
    if (!preparation.ok) throw new Error(preparation.reason)
    return preparation.message
  })
}
