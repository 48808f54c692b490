import { describe, expect, it } from 'vitest'
import { readAnswers } from '../../../chaos/answers.js'
import { MetricSums } from '../../../chaos/metrics.js'
import { Faults } from '../../../src/local/faults/faults.js'
import { createFront, type Exchange } from '../../../src/local/front/front.js'
import { jsonAnswer, SERVICES, xmlAnswer } from '../../../src/local/front/protocol.js'
import type { FaultSetting } from '../../../src/local/stack.js'
import type { LocalService, ServiceRequest } from '../../../src/local/service.js'

const ids = [
  '0197f3a2-0000-7000-8000-000000000001',
  '0197f3a2-0000-7000-8000-000000000002',
  '0197f3a2-0000-7000-8000-000000000003',
]
const message = (id: string) => `{"specversion":"1.0","id":"${id}","data":{}}`
const request = (headers: Record<string, string>, body: string): ServiceRequest => ({
  method: 'POST',
  path: '/',
  headers,
  body: Buffer.from(body),
})

const requests = {
  sqs: request(
    { 'x-amz-target': 'AmazonSQS.SendMessageBatch' },
    JSON.stringify({
      QueueUrl: 'http://localhost/000000000000/queue',
      Entries: ids.map((id, n) => ({ Id: `e${n}`, MessageBody: message(id) })),
    }),
  ),
  events: request(
    { 'x-amz-target': 'AWSEvents.PutEvents' },
    JSON.stringify({ Entries: ids.map((id) => ({ EventBusName: 'bus', DetailType: 'Moved', Detail: message(id) })) }),
  ),
  sns: request(
    { 'content-type': 'application/x-www-form-urlencoded' },
    new URLSearchParams({
      Action: 'PublishBatch',
      Version: '2010-03-31',
      TopicArn: 'arn:aws:sns:us-east-1:000000000000:topic',
      ...Object.fromEntries(
        ids.flatMap((id, n) => [
          [`PublishBatchRequestEntries.member.${n + 1}.Id`, `e${n}`],
          [`PublishBatchRequestEntries.member.${n + 1}.Message`, message(id)],
        ]),
      ),
    }).toString(),
  ),
} as const

/** Accepts everything. */
const service: LocalService = {
  handle: ({ headers, body }) => {
    const entries = (JSON.parse(headers['content-type'] === undefined ? body.toString() : '{}') as { Entries?: { Id: string }[] })
      .Entries
    if (headers['x-amz-target']?.startsWith('AmazonSQS') === true)
      return Promise.resolve(jsonAnswer('sqs', { Successful: entries?.map(({ Id }) => ({ Id, MessageId: 'm' })) }))
    if (entries !== undefined)
      return Promise.resolve(jsonAnswer('events', { FailedEntryCount: 0, Entries: entries.map(() => ({ EventId: 'm' })) }))
    const members = [...new URLSearchParams(body.toString())].flatMap(([name, value]) => (name.endsWith('.Id') ? [value] : []))
    const accepted = members.map((Id) => `<member><Id>${Id}</Id><MessageId>m</MessageId></member>`).join('')
    return Promise.resolve(xmlAnswer('PublishBatch', `<Successful>${accepted}</Successful><Failed/>`))
  },
  stop: () => Promise.resolve(),
}

describe.each(['sqs', 'sns', 'events'] as const)('answers of %s, as the injector sees them', (name) => {
  async function seen(...rules: FaultSetting['rules']) {
    const faults = new Faults()
    faults.set({ rules })
    const exchanges: Exchange[] = []
    const services = Object.fromEntries(SERVICES.map((one) => [one, service])) as Record<(typeof SERVICES)[number], LocalService>
    await createFront(services, faults, (exchange) => exchanges.push(exchange)).handle(requests[name])
    expect(exchanges).toHaveLength(1)
    return readAnswers(exchanges[0]!, 1)
  }
  const all = (answer: object) => ids.map((eventId) => ({ eventId, atMs: 1, ...answer }))

  it('are accepted beside each other', async () => {
    expect(await seen()).toEqual(all({ kind: 'accepted', code: null, besideAccepted: true }))
  })

  it('are refused, and missing, beside an accepted one', async () => {
    const answers = await seen(
      { service: name, match: ids[0], fault: { kind: 'entry-error', code: 'InternalError' } },
      { service: name, match: ids[2], fault: { kind: 'entry-missing' } },
    )
    expect(answers).toEqual([
      { eventId: ids[0], atMs: 1, kind: 'refused', code: 'InternalError', besideAccepted: true },
      { eventId: ids[1], atMs: 1, kind: 'accepted', code: null, besideAccepted: false },
      { eventId: ids[2], atMs: 1, kind: 'missing', code: 'UnknownEntry', besideAccepted: true },
    ])
  })

  it('are refused alone if nothing was accepted', async () => {
    const answers = await seen({ service: name, fault: { kind: 'entry-error', code: 'InternalError' } })
    expect(answers).toEqual(all({ kind: 'refused', code: 'InternalError', besideAccepted: false }))
  })

  it.each(['drop-reply', 'reset', 'throttle'] as const)('say nothing of an entry after %s', async (kind) => {
    const answers = await seen(
      { service: name, fault: { kind } },
      { service: name, match: ids[0], fault: { kind: 'entry-error', code: 'InternalError' } },
    )
    expect(answers).toEqual(all({ kind: 'whole', code: null, besideAccepted: false }))
  })
})

describe('metrics', () => {
  it('are added up from the lines of the functions, whatever else they write', () => {
    const metrics = new MetricSums()
    const line = (value: number) =>
      `relay-1 {"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Namespace":"OutboxRelay","Dimensions":[["service"]],"Metrics":[{"Name":"Published","Unit":"Count"},{"Name":"DeliveryLatency","Unit":"Milliseconds"}]}]},"service":"local","Published":${value},"DeliveryLatency":[5]}`
    for (const one of [line(2), line(3), line(4).slice(0, -9), 'relay-1 {"level":"INFO","Published":7}', '']) metrics.hear(one)
    expect(metrics.get('Published')).toBe(5)
    expect(metrics.get('DeliveryLatency')).toBe(0)
    expect(metrics.get('Failed')).toBe(0)
  })
})
