import { describe, expect, it } from 'vitest'
import { eventJson, relativeText, sinceMs, statusText } from '../../src/cli/event-view.js'
import type { EventStatusRow } from '../../src/store/postgres/status.js'

const event: EventStatusRow = {
  id: '01900000-0000-7000-8000-000000000001',
  eventType: 'OrderCreated',
  aggregateType: null,
  aggregateId: null,
  orderingKey: null,
  destination: null,
  status: 'pending',
  detail: 'ready',
  attempts: 0,
  replays: 0,
  createdAtMs: 1,
  dueAtMs: 2,
  retryAtMs: null,
  failedAtMs: null,
  deliveredAtMs: null,
  brokerMessageId: null,
  lastErrorCode: null,
  lastError: null,
  headers: null,
  payloadBytes: 2,
  shard: 3,
  seq: 9_007_199_254_740_993n,
}

describe('an event for people and scripts', () => {
  it('keeps every digit of its seq in JSON', () => {
    expect(JSON.parse(JSON.stringify(eventJson(event)))).toMatchObject({ seq: '9007199254740993' })
    expect(eventJson({ ...event, seq: null }).seq).toBeNull()
  })

  it('is what it is since it was delivered, failed, due or created', () => {
    expect(sinceMs({ ...event, deliveredAtMs: 4 })).toBe(4)
    expect(sinceMs({ ...event, failedAtMs: 3 })).toBe(3)
    expect(sinceMs(event)).toBe(2)
    expect(sinceMs({ ...event, dueAtMs: null })).toBe(1)
  })

  it('says past and future in words', () => {
    expect(relativeText(0, 180_000)).toBe('3 minutes ago')
    expect(relativeText(180_000, 0)).toBe('in 3 minutes')
    expect(statusText(event)).toBe('pending: ready')
    expect(statusText({ ...event, status: 'published', detail: null })).toBe('published')
  })
})
