import { DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient, type Message } from '@aws-sdk/client-sqs'
import { setTimeout as pause } from 'node:timers/promises'
import { createOutbox, type NewEvent } from '../../src/writer/index.js'
import type { BenchTools } from './run.js'
import { until, type BenchStack } from './stack.js'

export interface GroupedEvent {
  /** Under which name its latency is counted. */
  readonly group: string
  readonly event: NewEvent
}

export interface Load {
  readonly perSecond: number
  readonly seconds: number
  /** The n-th event. */
  readonly event: (n: number) => GroupedEvent
}

export interface GroupLatency {
  readonly written: number
  readonly received: number
  /** Milliseconds from when the commit was sent to when the message was received. */
  readonly latenciesMs: readonly number[]
}

/**
 * A service that writes through the Data API, and consumers that long-poll queues, in this process: both clocks are the same.
 *
 * A latency begins when the commit is *sent*, so it contains the commit, and is never too short. Events come at their times,
 * whether or not the ones before have been written, so a slow system can not thin out what it is measured with.
 */
export class Traffic {
  readonly #written = new Map<string, { readonly group: string; readonly atMs: number }>()
  readonly #received = new Map<string, number>()
  readonly #stop = new AbortController()
  readonly #consumers: Promise<void>[] = []
  readonly #client: SQSClient
  readonly #outbox
  #failedWrites = 0

  constructor(
    private readonly bench: BenchStack,
    tools: BenchTools,
  ) {
    const { endpoint, region } = bench.stack.description
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
    this.#client = new SQSClient({ endpoint, region, credentials, useQueueUrlAsEndpoint: false })
    this.#outbox = createOutbox({ database: bench.database })
    tools.atEnd(() => this.stop())
  }

  get failedWrites(): number {
    return this.#failedWrites
  }

  /** Two long polls at a time, so that one is always waiting while the other's messages are noted. */
  consume(queue: string): void {
    const QueueUrl = this.bench.stack.description.queues[queue]
    if (QueueUrl === undefined) throw new Error(`no queue ${queue}`)
    this.#consumers.push(this.#poll(QueueUrl), this.#poll(QueueUrl))
  }

  async write({ group, event }: GroupedEvent): Promise<void> {
    const tx = await this.bench.database.begin()
    const [id] = await this.#outbox.writeEvents(tx, [event])
    this.#written.set(id!, { group, atMs: performance.now() })
    await tx.commit()
  }

  /** Writes events at their times; ends when the last is written. */
  async run({ perSecond, seconds, event }: Load): Promise<void> {
    const beganAt = performance.now()
    const writing = new Set<Promise<void>>()
    for (let n = 0; n < perSecond * seconds && !this.#stop.signal.aborted; n++) {
      await pause(Math.max(0, beganAt + (n * 1000) / perSecond - performance.now()))
      const write = this.write(event(n))
        .catch(() => void (this.#failedWrites += 1))
        .finally(() => writing.delete(write))
      writing.add(write)
    }
    await Promise.all(writing)
  }

  /** Waits until all that was written in this group has come; answers false if that takes too long. */
  async allReceived(group: string, giveUpSeconds: number): Promise<boolean> {
    const ids = [...this.#written].flatMap(([id, one]) => (one.group === group ? [id] : []))
    return until('the messages', giveUpSeconds, () => ids.every((id) => this.#received.has(id))).then(
      () => true,
      () => false,
    )
  }

  latency(group: string): GroupLatency {
    const own = [...this.#written].filter(([, one]) => one.group === group)
    const latenciesMs = own.flatMap(([id, { atMs }]) => {
      const receivedAtMs = this.#received.get(id)
      return receivedAtMs === undefined ? [] : [receivedAtMs - atMs]
    })
    return { written: own.length, received: latenciesMs.length, latenciesMs }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#consumers)
    this.#client.destroy()
  }

  async #poll(QueueUrl: string): Promise<void> {
    const abortSignal = this.#stop.signal
    while (!abortSignal.aborted) {
      try {
        const { Messages = [] } = await this.#client.send(
          new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20 }),
          { abortSignal },
        )
        const nowMs = performance.now()
        for (const { Body = '{}' } of Messages) {
          const { id } = JSON.parse(Body) as { readonly id: string }
          if (!this.#received.has(id)) this.#received.set(id, nowMs)
        }
        if (Messages.length > 0) void this.#delete(QueueUrl, Messages)
      } catch {
        // stopped, or a broken connection: the loop's condition tells
        await pause(50)
      }
    }
  }

  async #delete(QueueUrl: string, messages: readonly Message[]): Promise<void> {
    const Entries = messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
    // what is not deleted comes again, and is known
    await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries })).catch(() => undefined)
  }
}
