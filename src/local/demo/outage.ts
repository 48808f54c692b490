import type { FaultReport, FaultSetting } from '../faults/rules.js'
import { pause } from './pause.js'

/** The local stack's fault rules, through its control API. */
export interface FaultControl {
  readonly set: (setting: FaultSetting) => Promise<FaultReport>
  readonly get: () => Promise<FaultReport>
  readonly clear: () => Promise<FaultReport>
}

/** @param endpoint of the local stack */
export function faultControl(endpoint: string): FaultControl {
  const call = async (method: string, body?: FaultSetting): Promise<FaultReport> => {
    const answer = await fetch(`${endpoint}/_local/faults`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} /_local/faults was answered with ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as FaultReport
  }
  return {
    set: (setting) => call('PUT', setting),
    get: () => call('GET'),
    clear: () => call('DELETE'),
  }
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
const lostRepliesMs = 10_000

/**
 * Every destination is down for `seconds`. It begins as real outages do: a few requests arrive and their answers are lost,
 * so that the relay must send those events once more and a consumer may get them twice.
 */
export async function haveOutage(faults: FaultControl, seconds: number, stop: AbortSignal): Promise<void> {
  await faults.set({ rules: sends.map((send) => ({ ...send, times: lostReplies, fault: { kind: 'drop-reply' } })) })
  const untilMs = performance.now() + lostRepliesMs
  while (performance.now() < untilMs && !stop.aborted) {
    const { rules } = await faults.get()
    if (rules.every(({ service, hits }) => service === 'sns' || hits >= lostReplies)) break
    await pause(100, stop)
  }
  await faults.set({
    rules: sends.map((send) => ({ ...send, fault: { kind: 'error', name: 'ServiceUnavailable', status: 503 } })),
  })
  await pause(seconds * 1000, stop)
  await faults.clear()
}

/** The queues say yes to three messages and deliver none of them: real loss, which the ledger must show. */
export async function swallowSome(faults: FaultControl): Promise<void> {
  await faults.set({
    rules: [{ service: 'sqs', operation: 'SendMessageBatch', times: 3, fault: { kind: 'swallow' } }],
  })
}
