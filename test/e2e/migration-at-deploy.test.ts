import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { deploymentRequest, startDeploymentAnswers, type DeploymentAnswers } from '../support/deployment-answers.js'
import { outboxClients, type OutboxClients } from '../support/outbox-clients.js'

/** The bundled migrate handler, asked as CloudFormation asks it. */
let stack: LocalStack
let clients: OutboxClients
let cloudFormation: DeploymentAnswers

beforeAll(async () => {
  cloudFormation = await startDeploymentAnswers()
  stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
  clients = outboxClients(stack.description)
}, 120_000)
afterEach(() => stack.faults.clear())
afterAll(async () => {
  clients.destroy()
  await stack.stop()
  await cloudFormation.stop()
})

async function ask(RequestType: string, more: Readonly<Record<string, unknown>>) {
  const { error } = await stack.invoke('migrate', deploymentRequest(cloudFormation.url, { RequestType, ...more }))
  return { error: error?.message ?? null, ...cloudFormation.received.at(-1)!.answer }
}

const release = (Release: string) => ({ ResourceProperties: { Release } })

it('a creation that CloudFormation repeats succeeds each time as the same resource', async () => {
  const first = await ask('Create', release('one'))
  expect(first).toMatchObject({ error: null, Status: 'SUCCESS' })
  expect(await ask('Create', release('one'))).toEqual(first)
})

it('an update fails with the reason of the database, rolls back without it, and is deleted with every event still there', async () => {
  const { PhysicalResourceId } = await ask('Create', release('one'))
  await clients.insert('OrderCreated', '{"orderId":42}')
  const message = 'ERROR: permission denied for database; SQLState: 42501'
  const down = { kind: 'error', name: 'DatabaseErrorException', status: 400, message } as const
  stack.faults.set({ seed: 1, rules: [{ service: 'rds-data', fault: down }] })

  const failed = await ask('Update', { PhysicalResourceId, ...release('two') })
  expect(failed).toMatchObject({ Status: 'FAILED', PhysicalResourceId })
  expect(failed.Reason).toContain('permission denied for database')
  expect(failed.error).toContain('permission denied for database')
  expect(await ask('Update', { PhysicalResourceId, ...release('one') })).toMatchObject({ error: null, Status: 'SUCCESS' })
  expect(await ask('Delete', { PhysicalResourceId, ...release('one') })).toMatchObject({ error: null, Status: 'SUCCESS' })

  stack.faults.clear()
  expect((await stack.state()).backlog).toMatchObject({ depth: 1 })
})

it('a cluster that is resuming is waited for', async () => {
  stack.faults.set({ seed: 1, rules: [{ service: 'rds-data', times: 3, fault: { kind: 'resuming', seconds: 1 } }] })
  expect(await ask('Create', release('one'))).toMatchObject({ error: null, Status: 'SUCCESS' })
})

it.each(['rds-data', 'secretsmanager'] as const)(
  'a role whose rights %s does not know yet is waited for at a deployment, and at no other time',
  async (service) => {
    const denied = { service, times: 2, fault: { kind: 'error', name: 'AccessDeniedException', status: 400 } } as const
    stack.faults.set({ seed: 1, rules: [denied] })
    expect(await ask('Create', release('one'))).toMatchObject({ error: null, Status: 'SUCCESS' })

    stack.faults.set({ seed: 1, rules: [denied] })
    const { error } = await stack.invoke('migrate')
    expect(error?.message).toContain('AccessDeniedException')
  },
)
