import type { Mutant } from './mutant.js'

const BATCH = 'src/core/batch.ts'
const RETRY_POLICY = 'src/core/retry-policy.ts'
const SERVE_BATCH = 'src/core/serve-batch.ts'

/** What a destination is sent, what its answer is taken for, and what becomes of the event. */
export const mutantsOfPublishing: readonly Mutant[] = [
  {
    name: 'ignore-failed-entry-count',
    breaks: 'an answer with status 200 counts as success for every entry, whatever FailedEntryCount says',
    file: 'src/publishers/eventbridge/answers.ts',
    find: '(_, index) => entryAnswer(aligned[index])',
    replace: "(_, index) => ({ kind: 'accepted' as const, messageId: aligned[index]?.EventId ?? '' })",
    killers: [{ file: 'test/unit/eventbridge.test.ts', test: 'is read by index, though its status is 200' }],
  },
  {
    name: 'ignore-failed-list',
    breaks: 'what SQS and SNS refuse in an answer with status 200 counts as success',
    file: 'src/publishers/batch-answers.ts',
    find: 'byId.set(Id, refusedEntry(faults, { code: Code, message: Message, senderFault: SenderFault }))',
    replace: "byId.set(Id, { kind: 'accepted', messageId: '' })",
    killers: [{ file: 'test/unit/sqs.test.ts', test: 'is read by Id, whatever its order' }],
  },
  {
    name: 'unknown-entry-is-success',
    breaks: 'an entry that the answer of SQS or SNS names nowhere counts as published',
    file: 'src/publishers/batch-answers.ts',
    find: "?? { kind: 'missing' }",
    replace: "?? { kind: 'accepted', messageId: '' }",
    killers: [{ file: 'test/unit/sqs.test.ts', test: 'leaves an entry that neither list names missing' }],
  },
  {
    name: 'unknown-entry-of-a-bus-is-success',
    breaks: 'an entry to which EventBridge gave neither an id nor an error counts as published',
    file: 'src/publishers/eventbridge/answers.ts',
    find: "{ kind: 'missing' }",
    replace: "{ kind: 'accepted', messageId: '' }",
    killers: [{ file: 'test/unit/eventbridge.test.ts', test: 'leaves an entry with neither id nor error missing' }],
  },
  {
    name: 'unknown-answer-is-published',
    breaks: 'an event whose entry is missing from the answer is settled as published',
    file: RETRY_POLICY,
    find: 'return decideTransient(UNKNOWN, attempt, circumstances, policy, random)',
    replace: "return { kind: 'published', destination, messageId: '' }",
    killers: [
      { file: 'test/unit/retry-policy.test.ts', test: 'is published only if the entry was accepted' },
      { file: 'test/integration/relay-pass.test.ts', test: 'records as published only what the destination confirmed' },
    ],
  },
  {
    name: 'charge-on-throttle',
    breaks: 'an event pays with an attempt for a request that failed whole',
    file: RETRY_POLICY,
    find: 'delayMs: retryDelayMs(circumstances.consecutiveFaults, delays, random),\n    charge: false',
    replace: 'delayMs: retryDelayMs(circumstances.consecutiveFaults, delays, random),\n    charge: true',
    killers: [
      { file: 'test/unit/retry-policy.test.ts', test: 'is an uncharged retry for whatever is the fault of the destination' },
    ],
  },
  {
    name: 'never-charge',
    breaks: 'an event that is refused again and again among accepted neighbours never uses up its attempts',
    file: RETRY_POLICY,
    find: 'charge: true,',
    replace: 'charge: false,',
    killers: [
      { file: 'test/unit/retry-policy.test.ts', test: 'is a charged retry if neighbours were accepted' },
      { file: 'test/integration/relay-pass.test.ts', test: 'fails an event whose charged attempts are used up' },
    ],
  },
  {
    name: 'two-events-of-a-key-in-one-request',
    breaks: 'what waits behind an event of its key is ready at once',
    file: BATCH,
    find: 'chain.push(event)',
    replace: 'this.#makeReady(event)',
    killers: [{ file: 'test/integration/relay-pass.test.ts', test: 'publishes the events of a key one at a time' }],
  },
  {
    name: 'publish-before-the-one-before-is-confirmed',
    breaks: 'the next event of a key goes out when the one before is sent, not when it is confirmed',
    file: BATCH,
    find: 'for (const { event } of events) this.#sent.add(event.id)',
    replace: 'for (const { event } of events) {\n      this.#sent.add(event.id)\n      this.#nextOfKey(event)\n    }',
    killers: [
      { file: 'test/unit/batch.test.ts', test: 'makes the next event of a key ready only when the one before is published' },
    ],
  },
  {
    name: 'go-on-behind-a-retry',
    breaks: 'the next event of a key goes out though the one before has to be retried',
    file: BATCH,
    find: "if (outcome.kind === 'published') this.#nextOfKey(event)",
    replace: "if (outcome.kind !== 'failed') this.#nextOfKey(event)",
    killers: [{ file: 'test/unit/batch.test.ts', test: 'leaves the rest of a key when one of it is not published' }],
  },
  {
    name: 'no-lease-check-before-a-request',
    breaks: 'a request goes out although the lease may be over before its answer',
    file: SERVE_BATCH,
    find: 'return this.#lease.remainingMs() > settings.requestTimeoutMs + LEASE_MARGIN_MS',
    replace: 'return true',
    killers: [{ file: 'test/integration/relay-pass-failures.test.ts', test: 'sends nothing when its lease may be over' }],
  },
  {
    name: 'no-lease-check-between-parts',
    breaks: 'the halves of a request that was refused whole go out without a look at the lease',
    file: 'src/core/bisect.ts',
    find: 'if (stop === null && !mayStart())',
    replace: 'if (stop === null && requests === 0 && !mayStart())',
    killers: [{ file: 'test/unit/bisect.test.ts', test: 'asks before each request, and leaves unsent what it may not send' }],
  },
  {
    name: 'claim-after-publishing',
    breaks: 'the next batch is claimed when all of the last one is published, not meanwhile',
    file: 'src/core/relay-pass.ts',
    find: 'const SENDING_BATCHES = 2',
    replace: 'const SENDING_BATCHES = 1',
    killers: [{ file: 'test/integration/relay-pass.test.ts', test: 'claims the next batch while it publishes' }],
  },
  {
    name: 'skip-an-event-whose-payload-is-missing',
    breaks: 'an event whose payload cannot be fetched counts as published',
    file: 'src/core/load-message.ts',
    find: 'rowMissing(event)',
    replace: "{ kind: 'published', destination, messageId: '' }",
    killers: [{ file: 'test/integration/relay-pass.test.ts', test: 'settles it so too when the row goes between its claim' }],
  },
  {
    name: 'send-a-payload-without-its-last-chunks',
    breaks: 'a payload of many chunks is sent after the first call for chunks',
    file: 'src/store/postgres/read-payload.ts',
    find: "if (parts.length >= integer(first, 'chunks')) return",
    replace: 'return',
    killers: [{ file: 'test/contract/store.test.ts', test: 'does not come with the claim, and is read whole' }],
  },
  {
    name: 'replay-without-a-new-deduplication-id',
    breaks: 'a FIFO queue swallows a replay as a duplicate',
    file: 'src/publishers/fifo.ts',
    find: 'event.replays === 0 ? event.id :',
    replace: 'event.replays >= 0 ? event.id :',
    killers: [{ file: 'test/unit/sqs.test.ts', test: 'has a deduplication id of its own after each replay' }],
  },
]
