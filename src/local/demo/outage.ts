import type { FaultReport, FaultSetting } from '../faults/rules.js'
import { pause } from './pause.js'

/** The part of the local stack's faults that an outage needs. */
export interface FaultControl {
  set(setting: FaultSetting): void
  get(): FaultReport
  clear(): void
}

/** What relays send to: operations of consumers are left alone. */
const sends = [
  { service: 'sqs', operation: 'SendMessageBatch' },
  { service: 'events', operation: 'PutEvents' },
  { service: 'sns', operation: 'PublishBatch' },
] as const

/** Requests to each service that arrive, and whose answers do not, before everything is down. */
const lostReplies = 2
/** How long to wait for them if no relay sends anything. */
const lostRepliesMs = 2000

/**
 * Every destination is down for `seconds`. It begins as real outages do: a few requests arrive and their answers are lost,
 * so that the relay must send those events once more and a consumer gets them twice.
 */
export async function haveOutage(faults: FaultControl, seconds: number, stop: AbortSignal): Promise<void> {
  faults.set({ rules: sends.map((send) => ({ ...send, times: lostReplies, fault: { kind: 'drop-reply' } })) })
  for (let waitedMs = 0; waitedMs < lostRepliesMs && !stop.aborted; waitedMs += 100) {
    const { rules } = faults.get()
    if (rules.every(({ service, hits }) => service === 'sns' || hits >= lostReplies)) break
    await pause(100, stop)
  }
  faults.set({ rules: sends.map((send) => ({ ...send, fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 } })) })
  await pause(seconds * 1000, stop)
  faults.clear()
}
