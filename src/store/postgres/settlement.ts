import { utf8Bytes } from '../../core/json-text.js'
import type { SqlParameter } from '../../core/ports.js'
import type { SettledEvent, Settlement } from '../../core/settlement.js'

/** Of the 4,194,304 bytes that the Data API takes as a request; the rest is for SQL, names and headers. */
const MAX_BYTES = 4_000_000
/** What PostgreSQL keeps of a text. */
const TEXT_CHARACTERS = 2_000

/**
 * The parameters of `outbox_settle`. A batch of thousands with long errors would not fit into a request: then all texts are
 * shortened, because a settlement that is refused would have its events sent again for ever.
 */
export function encodeSettlement(settlement: Settlement): Readonly<Record<string, SqlParameter>> {
  for (let characters = TEXT_CHARACTERS; ; characters = Math.floor(characters / 2)) {
    const parameters = encode(settlement, (text) => clean(text, characters))
    // as they travel: lists that are JSON already, in JSON once more
    if (characters < 50 || utf8Bytes(JSON.stringify(parameters)) <= MAX_BYTES) return parameters
  }
}

type Clean = (text: string) => string

function encode({ token, events, done }: Settlement, clean: Clean): Readonly<Record<string, SqlParameter>> {
  const published = events.flatMap(({ id, replays = 0, outcome }) => {
    if (outcome.kind !== 'published') return []
    const receipt = { id, destination: clean(outcome.destination), messageId: clean(outcome.messageId) }
    return [replays === 0 ? receipt : { ...receipt, replays }]
  })
  return {
    token,
    published: list(published),
    changes: list(events.flatMap((event) => change(event, clean))),
    done: done === null ? null : JSON.stringify(done),
  }
}

function change({ id, attempts, outcome }: SettledEvent, clean: Clean): readonly object[] {
  if (outcome.kind === 'published') return []
  const { kind, destination, errorCode, error } = outcome
  return [
    {
      id,
      attempts,
      outcome: kind,
      destination: destination === null ? null : clean(destination),
      errorCode: errorCode === null ? null : clean(errorCode),
      error: error === null ? null : clean(error),
      ...(kind === 'hold' ? {} : { charge: outcome.charge }),
      ...(kind === 'retry' ? { delayMs: outcome.delayMs } : {}),
      ...(kind === 'failed' ? { block: outcome.block } : {}),
    },
  ]
}

const list = (entries: readonly object[]): string | null => (entries.length === 0 ? null : JSON.stringify(entries))

/** Without U+0000 and lone surrogates: PostgreSQL refuses a whole settlement for one, and brokers' texts may hold anything. */
function clean(text: string, characters: number): string {
  return text.slice(0, characters).replace(/[\0\p{Surrogate}]/gu, '')
}
