import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  createOutbox,
  type DataApiDatabase,
  type NewEvent,
  type OutboxOptions,
  type OutboxWarning,
} from '../../src/writer/index.js'

const scheduled = { availableAt: new Date(0), orderingKey: 'customer-7' }
afterEach(() => vi.restoreAllMocks())

/** Writes events as a transaction of the service would, whose database says yes to everything. */
async function written(events: readonly NewEvent[], options: Omit<OutboxOptions, 'database'> = {}): Promise<readonly string[]> {
  const database = {
    joinTransaction: () => ({ execute: () => Promise.resolve({ rows: [{ id: 'other', xid: '1', server: '1' }] }) }),
  } as unknown as DataApiDatabase
  return createOutbox({ database, ...options }).writeEvents({ transactionId: 't' }, events)
}

describe('An event with both a time and an ordering key', () => {
  test('is written with a warning that names it, and every one is heard by onWarning', async () => {
    const heard: OutboxWarning[] = []
    const emitWarning = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const ids = await written(
      [
        { eventType: 'Reminder', payload: {}, ...scheduled },
        { eventType: 'Reminder', payload: {}, availableAt: scheduled.availableAt },
        { eventType: 'Reminder', payload: {}, orderingKey: scheduled.orderingKey },
        { eventType: 'Reminder', payload: {}, ...scheduled },
      ],
      { onWarning: (warning) => heard.push(warning) },
    )
    expect(heard).toEqual(
      [ids[0], ids[3]].map((eventId) => ({
        code: 'ScheduledOrder',
        message:
          'event type "Reminder" is written with availableAt and orderingKey: a scheduled event has no order relative to the others of its key',
        eventType: 'Reminder',
        eventId,
      })),
    )
    expect(emitWarning).not.toHaveBeenCalled()
  })

  test('is told of by Node, once for each event type, if nobody listens', async () => {
    const emitWarning = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const event = (eventType: string): NewEvent => ({ eventType, payload: {}, ...scheduled })
    await written([event('Reminder'), event('Reminder'), event('Invoice')])
    expect(emitWarning.mock.calls).toEqual(
      ['Reminder', 'Invoice'].map((type) => [
        expect.stringContaining(`event type "${type}" is written with availableAt and orderingKey`) as string,
        { type: 'OutboxWarning', code: 'ScheduledOrder' },
      ]),
    )
  })

  test('is not warned of when its neighbours keep it from being written', async () => {
    const heard: OutboxWarning[] = []
    const events = [
      { eventType: 'Reminder', payload: {}, ...scheduled },
      { eventType: '', payload: {} },
    ]
    await expect(written(events, { onWarning: (warning) => heard.push(warning) })).rejects.toThrow(/^eventType must have/)
    expect(heard).toEqual([])
  })
})
