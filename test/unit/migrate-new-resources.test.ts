import { expect, it } from 'vitest'
import { untilNewResourcesAreKnown } from '../../lambdas/migrate/new-resources.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import { OutboxError, SchemaError, SqlError } from '../../src/core/errors.js'
import { TestClock } from '../support/test-clock.js'

const denied = () => new SqlError('permanent', 'AccessDeniedException: no', { errorName: 'AccessDeniedException' })

/** Fails so often, each time with the same. */
function failing(error: Error, times = Infinity) {
  const clock = new TestClock()
  let calls = 0
  const work = () => (++calls > times ? Promise.resolve(calls) : Promise.reject(error))
  return { clock, attempt: (ms = 300_000) => untilNewResourcesAreKnown(work, { clock, deadline: deadlineAfter(clock, ms) }) }
}

it.each([
  denied(),
  new SchemaError('0001.sql: could not be applied', { cause: denied() }),
  new SqlError('permanent', 'ForbiddenException: no', { errorName: 'ForbiddenException' }),
  new SqlError('permanent', 'role/x is not authorized to perform: secretsmanager:GetSecretValue', {
    errorName: 'BadRequestException',
  }),
  new SqlError('permanent', 'HttpEndpoint is not enabled', { errorName: 'HttpEndpointNotEnabledException' }),
  new SqlError('permanent', 'no such database', { errorName: 'DatabaseNotFoundException' }),
  new OutboxError('SecretUnreadable', 'no', { cause: Object.assign(new Error('no'), { name: 'AccessDeniedException' }) }),
])('what is refused because it is new is asked for again: %s', async (error) => {
  expect(await failing(error, 3).attempt()).toBe(4)
})

it('whoever is refused for a minute is told so, and earlier if the time ends earlier', async () => {
  const forGood = failing(denied())
  await expect(forGood.attempt()).rejects.toThrow('AccessDeniedException')
  expect(forGood.clock.nowMs()).toBeGreaterThan(50_000)
  expect(forGood.clock.nowMs()).toBeLessThanOrEqual(60_000)

  const inHaste = failing(denied())
  await expect(inHaste.attempt(10_000)).rejects.toThrow('AccessDeniedException')
  expect(inHaste.clock.nowMs()).toBeLessThanOrEqual(10_000)
})

it.each([
  new SqlError('permanent', 'ERROR: permission denied for database', { errorName: 'DatabaseErrorException', sqlState: '42501' }),
  new SchemaError('another installation has the outbox'),
])('nothing else is asked for again: %s', async (error) => {
  const other = failing(error)
  await expect(other.attempt()).rejects.toBe(error)
  expect(other.clock.slept).toEqual([])
})
