import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readyText } from '../../src/cli/local-text.js'
import { discardLocalProcesses, startLocalProcess, type LocalProcess } from '../support/local-process.js'

const python = process.env['OUTBOX_PYTHON']
const script = fileURLToPath(new URL('../support/boto3-client.py', import.meta.url))

if (python === undefined && process.env['CI'] === undefined) {
  process.stderr.write('boto3.test.ts is skipped: OUTBOX_PYTHON is not set (the path of a Python that has boto3)\n')
}

describe.skipIf(python === undefined && process.env['CI'] === undefined)('boto3, a client that is not ours', () => {
  let local: LocalProcess
  beforeAll(async () => {
    if (python === undefined) throw new Error('OUTBOX_PYTHON is not set: in CI it must be the path of a Python that has boto3')
    local = await startLocalProcess('--relays', '1')
  })
  afterAll(async () => {
    await discardLocalProcesses()
  })

  it('writes rows, receives their events from the bus and the queue, and decodes every error', async () => {
    // what a person pastes into a shell is enough
    const lines = [...readyText(local.description).matchAll(/(AWS_\w+)=(\S+)/g)]
    const pasted: Record<string, string> = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]))
    const env = { PATH: process.env['PATH'], HOME: '/nonexistent', ...pasted }
    const { stdout } = await promisify(execFile)(python!, [script, JSON.stringify(local.description)], { env })
    const seen = JSON.parse(stdout) as Record<string, { body: string; attributes: string[] }>
    expect(seen).toEqual({
      inserted: 1,
      'from the bus': { body: expect.stringContaining('"data":{"orderId": 42}') as string, attributes: [] },
      'from the queue': {
        body: expect.stringContaining('"data":{"orderId": 43}') as string,
        attributes: ['eventId', 'eventType'],
      },
      throttled: ['RequestThrottled', 'Throttled', 'ThrottlingException'],
      resuming: 'DatabaseResumingException',
      reset: 'connection closed',
      'reply dropped': 'connection closed',
      batch: { successful: ['0'], failed: [['1', 'InternalError', false]] },
      'delivered of the batch': ['good', null],
      'wrong queue': 'AWS.SimpleQueueService.NonExistentQueue',
      'wrong sql': 'DatabaseErrorException',
    })
  })
})
