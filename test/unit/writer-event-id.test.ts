import { describe, expect, test } from 'vitest'
import { createEventIds } from '../../src/writer/event-id.js'

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const take = (count: number, next: () => string): string[] => Array.from({ length: count }, next)
const msOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

describe('Event ids', () => {
  test('are UUIDv7 with the time in front', () => {
    const [id = ''] = take(
      1,
      createEventIds(() => 1_764_496_800_123),
    )
    expect(id).toMatch(uuidV7)
    expect(msOf(id)).toBe(1_764_496_800_123)
  })

  test('grow and never repeat, even thousands in one millisecond', () => {
    const ids = take(
      20_000,
      createEventIds(() => 1_764_496_800_000),
    )
    expect(ids.every((id) => uuidV7.test(id))).toBe(true)
    expect(new Set(ids).size).toBe(20_000)
    expect([...ids].sort()).toEqual(ids)
    // 2,048 to 4,096 ids a millisecond, so the borrowed time stays small
    expect(msOf(ids.at(-1)!) - msOf(ids[0]!)).toBeLessThan(10)
  })

  test('grow even when the clock goes back', () => {
    const times = [1_000, 5_000, 2_000, 2_000, 5_001, 1]
    const ids = take(
      6,
      createEventIds(() => times.shift()!),
    )
    expect([...ids].sort()).toEqual(ids)
  })
})
