import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import { deadlineAfter } from '../../src/core/deadline.js'
import type { SqlFailureKind } from '../../src/core/errors.js'
import { sendUntilAnswered } from '../../src/data-api/retry.js'
import { TestClock } from '../support/test-clock.js'

const target = { resourceArn: 'arn:cluster', secretArn: 'arn:secret', database: 'orders' }
const untouched: readonly SqlFailureKind[] = ['not-executed', 'rolled-back']
const anyTransient: readonly SqlFailureKind[] = [...untouched, 'ambiguous']

const failing = (name: string, message = '', status = 400): Error =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } })
const sqlError = (state: string): Error => failing('DatabaseErrorException', `ERROR: no; SQLState: ${state}`)

/** Fails with the n-th error on call n; `null` or nothing left: answers. */
async function send(
  errors: readonly (Error | null)[],
  { again = anyTransient, deadlineMs = 60_000, random = 0, forever = false, oversleepMs = 0 } = {},
): Promise<{ outcome: string; repeated: boolean | undefined; sendings: number; slept: number[]; message: string }> {
  const clock = new TestClock()
  const busy: Clock = {
    nowMs: () => clock.nowMs(),
    epochMs: () => clock.epochMs(),
    sleep: (ms, signal) => clock.sleep(signal === undefined ? ms + oversleepMs : ms, signal),
  }
  let sendings = 0
  const call = (): Promise<string> => {
    const error = forever ? errors[0] : errors[sendings]
    sendings++
    return error === undefined || error === null ? Promise.resolve('answered') : Promise.reject(error)
  }
  const policy = {
    clock: busy,
    random: { next: () => random, uuid: () => '' },
    deadline: deadlineAfter(clock, deadlineMs),
    again,
    target,
  }
  try {
    const { answer, repeated } = await sendUntilAnswered(call, policy)
    return { outcome: answer, repeated, sendings, slept: clock.slept, message: '' }
  } catch (thrown) {
    const error = thrown as { kind: string; message: string }
    return { outcome: error.kind, repeated: undefined, sendings, slept: clock.slept, message: error.message }
  }
}

describe('A call is sent again', () => {
  test('after it was not executed or rolled back, whether or not it is repeatable, and is not called repeated', async () => {
    for (const error of [
      failing('ThrottlingException'),
      sqlError('40001'),
      sqlError('55P03'),
      failing('DatabaseResumingException'),
    ]) {
      expect(await send([error], { again: untouched })).toMatchObject({ outcome: 'answered', repeated: false, sendings: 2 })
    }
  })

  test('after an ambiguous failure only if it is repeatable, and then says that an earlier sending may have run', async () => {
    const lost = failing('InternalServerErrorException', '', 500)
    expect(await send([lost])).toMatchObject({ outcome: 'answered', repeated: true, sendings: 2 })
    expect(await send([lost, failing('ThrottlingException')])).toMatchObject({ outcome: 'answered', repeated: true, sendings: 3 })
    expect(await send([lost], { again: untouched })).toMatchObject({ outcome: 'ambiguous', sendings: 1, slept: [] })
  })

  test('never after a permanent failure, an oversize answer or a lost transaction', async () => {
    for (const error of [sqlError('23505'), failing('ValidationException'), failing('AccessDeniedException', '', 403)]) {
      expect(await send([error])).toMatchObject({ outcome: 'permanent', sendings: 1 })
    }
    expect(await send([failing('DatabaseErrorException', 'Database response exceeded size limit')])).toMatchObject({
      outcome: 'oversize',
      sendings: 1,
    })
    expect(await send([failing('TransactionNotFoundException', '', 404)])).toMatchObject({
      outcome: 'transaction-lost',
      sendings: 1,
    })
  })

  test('a few times only when the secret cannot be used: it may be in rotation', async () => {
    const wrong = await send([failing('InvalidSecretException')], { forever: true })
    expect(wrong).toMatchObject({ outcome: 'permanent', sendings: 4, slept: [500, 1_000, 2_000] })
    expect(await send([failing('SecretsErrorException')], { forever: true })).toMatchObject({
      outcome: 'not-executed',
      sendings: 4,
    })
    expect(await send([failing('InvalidSecretException'), sqlError('28P01')])).toMatchObject({ outcome: 'answered', sendings: 3 })
  })
})

describe('Waits', () => {
  test('grow exponentially to 5 s, jittered down to half', async () => {
    const { slept } = await send([failing('ThrottlingException')], { forever: true, random: 1 })
    expect(slept.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    const lowest = await send([failing('ThrottlingException')], { forever: true, random: 0 })
    expect(lowest.slept.slice(0, 3)).toEqual([50, 100, 200])
  })

  test('are 1 to 2 s while the database is resuming', async () => {
    expect(
      (await send([failing('DatabaseResumingException')], { forever: true, random: 0 })).slept.every((ms) => ms === 1_000),
    ).toBe(true)
    expect(
      (await send([failing('DatabaseResumingException')], { forever: true, random: 1 })).slept.every((ms) => ms === 2_000),
    ).toBe(true)
  })

  test('and sendings end before the deadline', async () => {
    const { outcome, slept } = await send([failing('DatabaseResumingException')], { forever: true, deadlineMs: 20_500 })
    expect(outcome).toBe('not-executed')
    expect(slept).toHaveLength(20)
  })
})

describe('The deadline', () => {
  test('lets nothing be sent once it has passed', async () => {
    expect(await send([null], { deadlineMs: 0 })).toMatchObject({ outcome: 'not-executed', sendings: 0 })
  })

  test('cuts a call that is under way, which is then ambiguous', async () => {
    const clock = new TestClock()
    const call = (signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(Object.assign(new Error('Request aborted'), { name: 'AbortError' }))),
      )
    const sent = sendUntilAnswered(call, {
      clock,
      random: { next: () => 0, uuid: () => '' },
      deadline: deadlineAfter(clock, 7_000),
      again: anyTransient,
      target,
    })
    clock.advance(7_000)
    await expect(sent).rejects.toMatchObject({ kind: 'ambiguous', message: 'AbortError: no answer before the deadline' })
  })
})

describe('Once a sending was ambiguous', () => {
  test.each([
    ['a permanent failure', sqlError('23505')],
    ['a lost right', failing('AccessDeniedException', '', 403)],
    ['a lost transaction', failing('TransactionNotFoundException', '', 404)],
  ])('%s of a later one ends in doubt, not in its own kind', async (_what, error) => {
    const { outcome, message } = await send([failing('InternalServerErrorException', '', 500), error])
    expect(outcome).toBe('ambiguous')
    expect(message).toMatch(/^an earlier sending may have run; the last one failed with /)
  })

  test('a deadline that passes while a busy machine sleeps too long ends in doubt too', async () => {
    const errors = [failing('InternalServerErrorException', '', 500)]
    expect(await send(errors, { deadlineMs: 10_000, oversleepMs: 20_000 })).toMatchObject({ outcome: 'ambiguous', sendings: 1 })
  })

  test('throttling until the deadline ends in doubt too', async () => {
    const errors = [
      failing('InternalServerErrorException', '', 500),
      ...Array.from({ length: 100 }, () => failing('ThrottlingException')),
    ]
    expect((await send(errors, { deadlineMs: 10_000 })).outcome).toBe('ambiguous')
  })
})
