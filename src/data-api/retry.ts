import type { Clock, Random } from '../core/clock.js'
import type { Deadline } from '../core/deadline.js'
import { SqlError, type SqlFailureKind } from '../core/errors.js'
import { classifyFailure, type Pace } from './classify.js'
import type { Target } from './failure-message.js'

const backoffBaseMs = 100
const backoffCapMs = 5_000
const resumingStepMs = 1_000
/** 0.5-1 s, 1-2 s, 2-4 s between four sendings. */
const brieflySendings = 4
const brieflyBaseMs = 1_000
/** Above the SDK's own request timeout (50 s), which does not watch an answer whose body stalls. */
const callLimitMs = 55_000

export interface Sending {
  readonly clock: Clock
  readonly random: Random
  readonly deadline: Deadline
  /** Failures after which the same call is sent again. */
  readonly again: readonly SqlFailureKind[]
  readonly target: Target
  /** Told of each sending. */
  readonly onCall?: OnCall | undefined
}

/** `failed` leaves out what is no fault: a cluster that resumes, and an answer that was too large. */
export type OnCall = (how: 'answered' | 'failed' | 'resuming' | 'oversize') => void

export interface Sent<Answer> {
  readonly answer: Answer
  /** An earlier sending may have run. */
  readonly repeated: boolean
}

/**
 * Sends one call, again and again until it is answered or the deadline is reached. Once a sending was ambiguous, only an
 * answer ends the doubt: any later failure is thrown as `ambiguous` too, whatever it says about itself.
 */
export async function sendUntilAnswered<Answer>(
  call: (signal: AbortSignal) => Promise<Answer>,
  { clock, random, deadline, again, target, onCall }: Sending,
): Promise<Sent<Answer>> {
  let repeated = false
  for (let sendings = 1; ; sendings++) {
    if (deadline.remainingMs() <= 0) {
      const error = new SqlError('not-executed', 'the deadline has passed before the statement could be sent', {
        errorName: 'DeadlineExceeded',
      })
      throw repeated ? doubtful(error) : error
    }
    try {
      const answer = await withinDeadline(call, clock, deadline)
      onCall?.('answered')
      return { answer, repeated }
    } catch (thrown) {
      const { error, pace } = classifyFailure(thrown, target)
      onCall?.(pace === 'resuming' ? 'resuming' : error.kind === 'oversize' ? 'oversize' : 'failed')
      const waitMs = pauseMs(pace, sendings, random)
      const sendAgain =
        (again.includes(error.kind) || pace === 'briefly') &&
        pace !== 'never' &&
        (pace !== 'briefly' || sendings < brieflySendings) &&
        waitMs < deadline.remainingMs()
      if (!sendAgain) throw repeated ? doubtful(error) : error
      repeated ||= error.kind === 'ambiguous'
      await clock.sleep(waitMs)
    }
  }
}

/** Grows with every sending, with jitter between half and the whole of it. */
function pauseMs(pace: Pace, sendings: number, random: Random): number {
  const jitter = 0.5 + random.next() / 2
  switch (pace) {
    case 'resuming':
      return resumingStepMs * 2 * jitter
    case 'briefly':
      return brieflyBaseMs * 2 ** (sendings - 1) * jitter
    case 'backoff':
      return Math.min(backoffCapMs, backoffBaseMs * 2 ** (sendings - 1)) * jitter
    case 'never':
      return 0
  }
}

async function withinDeadline<Answer>(
  call: (signal: AbortSignal) => Promise<Answer>,
  clock: Clock,
  deadline: Deadline,
): Promise<Answer> {
  const request = new AbortController()
  const answered = new AbortController()
  void clock.sleep(Math.min(callLimitMs, deadline.remainingMs()), answered.signal).then(() => request.abort())
  try {
    return await call(request.signal)
  } finally {
    answered.abort()
  }
}

function doubtful(error: SqlError): SqlError {
  if (error.kind === 'ambiguous' || error.kind === 'oversize') return error
  return new SqlError('ambiguous', `an earlier sending may have run; the last one failed with ${error.message}`, {
    errorName: error.errorName,
    sqlState: error.sqlState,
    cause: error.cause,
  })
}
