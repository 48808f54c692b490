import type { Template } from 'aws-cdk-lib/assertions'
import { describe, expect, it } from 'vitest'
import { environmentOf, exampleTemplate, type Resource, resourcesOf } from './synthesis.js'

const withDestination = (destination: Readonly<Record<string, unknown>>): Template =>
  exampleTemplate({ destinations: { work: destination }, routes: [], default: 'work' })

const made = (template: Template, type: string): Readonly<Record<string, Resource>> =>
  Object.fromEntries(Object.entries(resourcesOf(template, type)).filter(([id]) => id.startsWith('Destinationwork')))

/** The ids of a queue that was made and of its dead-letter queue. */
function queues(template: Template): readonly [queue: [string, Resource], deadLetters: [string, Resource]] {
  const entries = Object.entries(made(template, 'AWS::SQS::Queue'))
  const [deadLetters] = entries.filter(([id]) => id.includes('DeadLetters'))
  const [queue] = entries.filter(([id]) => !id.includes('DeadLetters'))
  if (entries.length !== 2 || queue === undefined || deadLetters === undefined) throw new Error(`${entries.length} queues`)
  return [queue, deadLetters]
}

/** The statements of the relay's role about one resource. */
function rightsOn(template: Template, id: string): readonly unknown[] {
  const [policy] = Object.entries(resourcesOf(template, 'AWS::IAM::Policy')).filter(([name]) =>
    name.startsWith('OutboxRelayRole'),
  )
  const { Statement } = policy?.[1].Properties.PolicyDocument as { readonly Statement: readonly { readonly Resource: unknown }[] }
  return Statement.filter(({ Resource }) => JSON.stringify(Resource).includes(`"${id}"`))
}

const output = (template: Template): unknown =>
  (template.findOutputs('DestinationWorkArn').DestinationWorkArn as { readonly Value: unknown } | undefined)?.Value

const byTlsAlone = { Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }

describe('a queue that the stack makes', () => {
  it('has a dead-letter queue; both are sealed, take no call in the clear, and outlive the stack', () => {
    const template = withDestination({ type: 'sqs', create: {} })
    const [[, queue], [deadLettersId, deadLetters]] = queues(template)
    expect(queue.Properties).toEqual({
      MessageRetentionPeriod: 345_600,
      VisibilityTimeout: 30,
      SqsManagedSseEnabled: true,
      RedrivePolicy: { deadLetterTargetArn: { 'Fn::GetAtt': [deadLettersId, 'Arn'] }, maxReceiveCount: 5 },
    })
    expect(deadLetters.Properties).toEqual({ MessageRetentionPeriod: 1_209_600, SqsManagedSseEnabled: true })
    for (const one of [queue, deadLetters]) expect(one).toMatchObject({ DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' })
    const policies = Object.values(made(template, 'AWS::SQS::QueuePolicy'))
    expect(policies).toHaveLength(2)
    for (const { Properties } of policies) expect(Properties.PolicyDocument).toMatchObject({ Statement: [byTlsAlone] })
  })

  it('is what the configuration says: FIFO at its full rate, with a FIFO dead-letter queue', () => {
    const create = { order: 'fifo', maxReceiveCount: 3, visibilityTimeoutSeconds: 120, retentionDays: 14 }
    const [[, queue], [, deadLetters]] = queues(withDestination({ type: 'sqs', create }))
    expect(queue.Properties).toMatchObject({
      FifoQueue: true,
      DeduplicationScope: 'messageGroup',
      FifoThroughputLimit: 'perMessageGroupId',
      MessageRetentionPeriod: 1_209_600,
      VisibilityTimeout: 120,
      RedrivePolicy: { maxReceiveCount: 3 },
    })
    expect(deadLetters.Properties).toMatchObject({ FifoQueue: true })
  })

  it('is what the relay sends to, may send to, and the stack tells the ARN of', () => {
    const template = withDestination({ type: 'sqs', create: {}, format: 'raw' })
    const [[id]] = queues(template)
    expect(JSON.stringify(environmentOf(template, 'OutboxRelayFunction').OUTBOX_DESTINATIONS)).toContain(`{"Ref":"${id}"}`)
    expect(JSON.stringify(environmentOf(template, 'OutboxRelayFunction').OUTBOX_DESTINATIONS)).toContain('raw')
    expect(rightsOn(template, id)).toEqual([
      { Effect: 'Allow', Action: ['sqs:SendMessage', 'sqs:GetQueueAttributes'], Resource: { 'Fn::GetAtt': [id, 'Arn'] } },
    ])
    expect(output(template)).toEqual({ 'Fn::GetAtt': [id, 'Arn'] })
  })
})

describe('a topic that the stack makes', () => {
  it('is sealed with a key of its own, takes no call in the clear, and lets nobody in by its policy', () => {
    const template = withDestination({ type: 'sns', create: {} })
    const [[keyId, key] = ['', undefined]] = Object.entries(made(template, 'AWS::KMS::Key'))
    const [topic] = Object.values(made(template, 'AWS::SNS::Topic'))
    expect(key?.Properties).toMatchObject({ EnableKeyRotation: true })
    expect(topic?.Properties).toEqual({ KmsMasterKeyId: { 'Fn::GetAtt': [keyId, 'Arn'] } })
    const [policy] = Object.values(made(template, 'AWS::SNS::TopicPolicy'))
    expect((policy?.Properties.PolicyDocument as { readonly Statement: unknown }).Statement).toEqual([
      expect.objectContaining({ Action: 'sns:Publish', ...byTlsAlone }),
    ])
  })

  it('can be FIFO, each group at its own rate', () => {
    const [topic] = Object.values(made(withDestination({ type: 'sns', create: { order: 'fifo' } }), 'AWS::SNS::Topic'))
    expect(topic?.Properties).toMatchObject({ FifoTopic: true, FifoThroughputScope: 'MessageGroup' })
    expect(topic?.Properties.TopicName).toMatch(/\.fifo$/)
  })

  it('is what the relay publishes to, with a data key that it gets through SNS alone', () => {
    const template = withDestination({ type: 'sns', create: {} })
    const [id = ''] = Object.keys(made(template, 'AWS::SNS::Topic'))
    const [keyId = ''] = Object.keys(made(template, 'AWS::KMS::Key'))
    expect(rightsOn(template, id)).toEqual([
      { Effect: 'Allow', Action: ['sns:Publish', 'sns:GetTopicAttributes'], Resource: { Ref: id } },
    ])
    expect(rightsOn(template, keyId)).toEqual([
      {
        Effect: 'Allow',
        Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
        Resource: { 'Fn::GetAtt': [keyId, 'Arn'] },
        Condition: { StringEquals: { 'kms:ViaService': 'sns.eu-central-1.amazonaws.com' } },
      },
    ])
    expect(output(template)).toEqual({ Ref: id })
  })
})

describe('a bus that the stack makes', () => {
  it('is what the relay puts events on, and nobody of another account', () => {
    const template = withDestination({ type: 'eventbridge', create: {} })
    const [id = ''] = Object.keys(made(template, 'AWS::Events::EventBus'))
    template.resourceCountIs('AWS::Events::EventBusPolicy', 0)
    expect(rightsOn(template, id)).toEqual([
      expect.objectContaining({
        Action: expect.arrayContaining(['events:PutEvents']) as unknown,
        Resource: { 'Fn::GetAtt': [id, 'Arn'] },
      }),
    ])
    expect(JSON.stringify(environmentOf(template, 'OutboxRelayFunction').OUTBOX_DESTINATIONS)).toContain(`["${id}","Arn"]`)
    expect(output(template)).toEqual({ 'Fn::GetAtt': [id, 'Arn'] })
  })
})

it('the stack tells no ARN of a destination that was there', () => {
  expect(Object.keys(exampleTemplate().findOutputs('*')).filter((name) => name.startsWith('Destination'))).toEqual([])
})
