import type { ActCommand } from './act.js'

const id = '0197f3a2-7c1e-7d33-9a3b-6f0c8a1b2c3d'

/** What operators do, one command each. */
export const acts: readonly ActCommand[] = [
  {
    action: 'redrive',
    description: 'Send failed events again, with their ids, in their old place of their ordering key.',
    among: 'failed',
    done: 'redriven',
    examples: [
      ['outbox redrive --error-code TooLarge --dry-run', 'how many would it be?'],
      [`outbox redrive --id ${id} --reason "the queue takes it now"`, 'one event'],
      ['outbox redrive --destination queue --rate 50 --reason "policy fixed"', 'not all at once'],
    ],
  },
  {
    action: 'discard',
    description: 'Give failed events up: they are never delivered, and their ordering keys go on.',
    among: 'failed',
    done: 'discarded',
    examples: [
      [`outbox discard --id ${id} --dry-run`, 'is it this one?'],
      [`outbox discard --id ${id} --reason "sent by hand" --yes`, 'give it up'],
    ],
  },
  {
    action: 'release',
    description: 'Let ordering keys go on that a failed event blocks; the event itself stays failed.',
    among: 'failed',
    done: 'released',
    examples: [
      ['outbox release --all --dry-run', 'how many would it be? (which keys: outbox list --blocked)'],
      ['outbox release --key customer-7 --reason "may come out of order"', 'a key goes on'],
    ],
  },
  {
    action: 'replay',
    description: 'Publish events again that were published already, with their ids, within retention.',
    among: 'published',
    done: 'queued for replay',
    examples: [
      ['outbox replay --event-type OrderPaid --from 2026-11-29T10:00:00Z --dry-run', 'how many would it be?'],
      [`outbox replay --id ${id} --reason "consumer lost it"`, 'one event'],
      ['outbox replay --key customer-7 --reason "read model rebuilt" --yes', 'a key, out of its order'],
    ],
  },
]
