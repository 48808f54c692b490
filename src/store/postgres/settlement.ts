import type { SqlParameter } from '../../core/ports.js'
import type { SettledEvent, Settlement } from '../../core/settlement.js'

/** The parameters of `outbox_settle`. */
export function encodeSettlement({ token, events, done }: Settlement): Readonly<Record<string, SqlParameter>> {
  const published = events.flatMap(({ id, outcome }) =>
    outcome.kind === 'published' ? [{ id, destination: clean(outcome.destination), messageId: clean(outcome.messageId) }] : [],
  )
  return {
    token,
    published: list(published),
    changes: list(events.flatMap(change)),
    done: done === null ? null : JSON.stringify(done),
  }
}

function change({ id, attempts, outcome }: SettledEvent): readonly object[] {
  if (outcome.kind === 'published') return []
  const { charge, errorCode, error } = outcome
  return [
    {
      id,
      attempts,
      outcome: outcome.kind,
      destination: outcome.destination === null ? null : clean(outcome.destination),
      errorCode: clean(errorCode),
      error: clean(error),
      charge,
      ...(outcome.kind === 'retry' ? { delayMs: outcome.delayMs } : { block: outcome.block }),
    },
  ]
}

const list = (entries: readonly object[]): string | null => (entries.length === 0 ? null : JSON.stringify(entries))

/**
 * What PostgreSQL keeps of a text: at most 2,000 characters, without U+0000 and lone surrogates. It refuses a whole settlement
 * for one of those, and broker's texts may hold anything.
 */
function clean(text: string): string {
  return text.slice(0, 2_000).replace(/[\0\p{Surrogate}]/gu, '')
}
