import type { Context } from 'aws-lambda'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { answeringCloudFormation } from '../../lambdas/migrate/cloudformation.js'
import { SchemaError } from '../../src/core/errors.js'
import { deploymentRequest, startDeploymentAnswers, type DeploymentAnswers } from '../support/deployment-answers.js'

const context = { logGroupName: 'orders-migrate', logStreamName: 'stream-1' } as Context
const properties = { ServiceToken: 'arn', Release: 'one', OUTBOX_SCHEMA: 'public' }

let cloudFormation: DeploymentAnswers
let calls: unknown[]

beforeAll(async () => {
  cloudFormation = await startDeploymentAnswers()
})
beforeEach(() => {
  cloudFormation.received.length = 0
  calls = []
})
afterAll(() => cloudFormation.stop())

const request = (RequestType: string, more: Readonly<Record<string, unknown>> = {}) =>
  deploymentRequest(cloudFormation.url, { RequestType, ResourceProperties: properties, ...more })

const handler = answeringCloudFormation((event) => {
  calls.push(event)
  return Promise.resolve('migrated')
})

const refusing = (message: string) =>
  answeringCloudFormation((event) => {
    calls.push(event)
    return Promise.reject(new SchemaError(message))
  })

const answers = () => cloudFormation.received.map(({ answer }) => answer)

it('runs on creation, and says so to CloudFormation in the words it expects', async () => {
  expect(await handler(request('Create'), context)).toBe('migrated')
  expect(cloudFormation.received).toMatchObject([{ contentType: undefined }])
  expect(answers()).toEqual([
    {
      Status: 'SUCCESS',
      PhysicalResourceId: expect.stringMatching(/^outbox-schema-[0-9a-f]{16}$/) as string,
      StackId: 'arn:aws:cloudformation:eu-central-1:111122223333:stack/outbox-relay-orders/1',
      RequestId: 'request-1',
      LogicalResourceId: 'OutboxMigration',
    },
  ])
})

it('fails the deployment with its reason and the place of its log, and the invocation too', async () => {
  await expect(refusing('the outbox is served by "billing"')(request('Create'), context)).rejects.toThrow('served by "billing"')
  expect(answers()).toMatchObject([
    { Status: 'FAILED', Reason: 'the outbox is served by "billing" (log group orders-migrate, stream stream-1)' },
  ])
})

it('keeps the answer under the 4,096 bytes that CloudFormation takes, however long the reason', async () => {
  await expect(refusing('\u{1f4ee}'.repeat(10_000))(request('Create'), context)).rejects.toThrow()
  expect(cloudFormation.received[0]!.bytes).toBeLessThan(4096)
})

it('runs again for another release or another setting, and not for the order of properties', async () => {
  await handler(request('Create'), context)
  const { PhysicalResourceId } = answers()[0]!
  for (const changed of [
    { ...properties, Release: 'two' },
    { ...properties, OUTBOX_SCHEMA: 'billing' },
  ])
    await handler(request('Update', { PhysicalResourceId, ResourceProperties: changed }), context)
  const reversed = Object.fromEntries(Object.entries(properties).reverse())
  await handler(request('Update', { PhysicalResourceId, ResourceProperties: reversed }), context)
  expect(calls).toHaveLength(3)
  expect(new Set(answers().map((answer) => answer.PhysicalResourceId)).size).toBe(3)
})

it('has nothing to do when an update that failed is rolled back, so that this needs no database', async () => {
  await handler(request('Create'), context)
  const { PhysicalResourceId } = answers()[0]!
  const update = { PhysicalResourceId, ResourceProperties: { ...properties, Release: 'two' } }
  await expect(refusing('no')(request('Update', update), context)).rejects.toThrow('no')
  expect(answers()[1]).toMatchObject({ Status: 'FAILED', PhysicalResourceId })

  const down = refusing('the database is out of reach')
  const back = { PhysicalResourceId, ResourceProperties: properties, OldResourceProperties: update.ResourceProperties }
  await down(request('Update', back), context)
  expect(answers()[2]).toMatchObject({ Status: 'SUCCESS', PhysicalResourceId })
  expect(calls).toHaveLength(2)
})

it('does nothing on delete', async () => {
  await handler(request('Delete', { PhysicalResourceId: 'outbox-schema-0123456789abcdef' }), context)
  expect(calls).toEqual([])
  expect(answers()).toMatchObject([{ Status: 'SUCCESS', PhysicalResourceId: 'outbox-schema-0123456789abcdef' }])
})

it('answers again when the connection is cut, and fails the invocation when it always is', async () => {
  cloudFormation.cut(2)
  await handler(request('Create'), context)
  expect(answers()).toHaveLength(1)
  cloudFormation.cut(3)
  await expect(handler(request('Create'), context)).rejects.toThrow()
  expect(answers()).toHaveLength(1)
})

it('runs for anybody else as any handler does', async () => {
  expect(await handler({}, context)).toBe('migrated')
  await expect(refusing('no')(undefined, context)).rejects.toThrow('no')
  expect(answers()).toEqual([])
})
