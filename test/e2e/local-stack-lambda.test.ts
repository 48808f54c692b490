import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LocalFunction } from '../../src/local/lambda/local-function.js'
import { builtFile } from '../../src/local/lambda/package-root.js'
import { isAlive } from '../../src/local/postgres/children.js'

/** One handler that does what its event says, in the process that runs the real ones. */
const HANDLER = `
let invocations = 0
export const handler = async (event, context) => {
  invocations += 1
  console.log(JSON.stringify({ said: event.say, invocations }))
  if (event.warn) console.error(event.warn)
  if (event.fail) throw Object.assign(new Error(event.fail), { name: 'ConfigurationError' })
  if (event.exit !== undefined) process.exit(event.exit)
  if (event.hang) await new Promise(() => setInterval(() => {}, 1000))
  if (event.spin) for (;;) {}
  if (event.waitMs) await new Promise((resolve) => setTimeout(resolve, event.waitMs))
  const remaining = context.getRemainingTimeInMillis()
  const later = await new Promise((resolve) => setTimeout(() => resolve(context.getRemainingTimeInMillis()), event.measureMs ?? 0))
  return { pid: process.pid, invocations, remaining, later, id: context.awsRequestId, name: context.functionName, memory: context.memoryLimitInMB, home: process.env.SECRET_OF_THIS_COMPUTER ?? null }
}`

interface Answer {
  readonly pid: number
  readonly invocations: number
  readonly remaining: number
  readonly later: number
  readonly id: string
  readonly name: string
  readonly memory: string
  readonly home: string | null
}

let directory: string
const functions: LocalFunction[] = []

function makeFunction(lines: string[] = [], timeoutSeconds = 5, bundle = 'handler.mjs'): LocalFunction {
  const made = new LocalFunction(
    {
      name: 'probe',
      hostPath: builtFile('local', 'lambda-host.mjs'),
      modulePath: join(directory, bundle),
      environment: { PATH: process.env['PATH']!, AWS_LAMBDA_FUNCTION_NAME: 'probe', AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256' },
      timeoutSeconds,
    },
    (line) => lines.push(line),
  )
  functions.push(made)
  return made
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'outbox-lambda-test-'))
  await writeFile(join(directory, 'handler.mjs'), HANDLER)
  await writeFile(join(directory, 'broken.mjs'), 'throw new Error("no such setting")')
  process.env['SECRET_OF_THIS_COMPUTER'] = 'x'
})
afterAll(async () => {
  delete process.env['SECRET_OF_THIS_COMPUTER']
  await Promise.all(functions.map((one) => one.stop()))
  await rm(directory, { recursive: true })
})

describe('a local function', () => {
  it('returns the result, and every line of the invocation, in order, before it ends', async () => {
    const lines: string[] = []
    const probe = makeFunction(lines)
    const first = await probe.invoke({ say: 'one' })
    const second = await probe.invoke({ say: 'two' })
    expect(first.error).toBeNull()
    expect(first.logs).toEqual(['{"said":"one","invocations":1}'])
    expect(second.logs).toEqual(['{"said":"two","invocations":2}'])
    expect(lines).toEqual(['probe {"said":"one","invocations":1}', 'probe {"said":"two","invocations":2}'])
    const answer = first.result as Answer
    expect(answer).toMatchObject({ id: first.requestId, name: 'probe', memory: '256', home: null })
    // the second invocation found the first one's process idle
    expect((second.result as Answer).pid).toBe(answer.pid)
  })

  it('tells the true time that is left', async () => {
    const { remaining, later } = (await makeFunction([], 5).invoke({ measureMs: 200 })).result as Answer
    expect(remaining).toBeGreaterThan(3000)
    expect(remaining).toBeLessThanOrEqual(5000)
    expect(remaining - later).toBeGreaterThanOrEqual(190)
    expect(remaining - later).toBeLessThan(1500)
  })

  it.each(['hang', 'spin'])(
    'kills an invocation at its timeout, also one that does %s, and starts the next in a new process',
    async (how) => {
      const probe = makeFunction([], 1)
      const { pid } = (await probe.invoke()).result as Answer
      const killed = await probe.invoke({ [how]: true, say: how })
      expect(killed.error).toEqual({ name: 'Sandbox.Timedout', message: 'Task timed out after 1.00 seconds' })
      expect(killed.result).toBeNull()
      expect(killed.logs).toEqual([`{"said":"${how}","invocations":2}`])
      expect(killed.durationMs).toBeGreaterThanOrEqual(990)
      expect((await probe.invoke()).result).toMatchObject({ invocations: 1 })
      await expect.poll(() => isAlive(pid)).toBe(false)
    },
  )

  it('fails an invocation whose handler throws, and keeps the process', async () => {
    const lines: string[] = []
    const probe = makeFunction(lines)
    const failed = await probe.invoke({ fail: 'OUTBOX_SOURCE is wrong' })
    expect(failed.error).toEqual({ name: 'ConfigurationError', message: 'OUTBOX_SOURCE is wrong' })
    expect(lines.at(-1)).toBe(`probe invocation ${failed.requestId} failed: ConfigurationError: OUTBOX_SOURCE is wrong`)
    expect((await probe.invoke()).result).toMatchObject({ invocations: 2 })
  })

  it('fails an invocation whose process ends or is killed, and goes on in a new one', async () => {
    const lines: string[] = []
    const probe = makeFunction(lines)
    expect((await probe.invoke({ exit: 3 })).error).toEqual({
      name: 'Runtime.ExitError',
      message: 'Runtime exited with error: exit status 3',
    })
    const hanging = probe.invoke({ hang: true, say: 'at work' })
    await expect.poll(() => lines.at(-1)).toContain('at work')
    probe.processes[0]!.signal('SIGKILL')
    expect((await hanging).error).toEqual({ name: 'Runtime.ExitError', message: 'Runtime exited with error: signal SIGKILL' })
    expect((await probe.invoke()).result).toMatchObject({ invocations: 1 })
  })

  it('runs invocations that overlap in processes of their own', async () => {
    const probe = makeFunction()
    const both = await Promise.all([probe.invoke({ waitMs: 300 }), probe.invoke({ waitMs: 300 })])
    const pids = both.map(({ result }) => (result as Answer).pid)
    expect(new Set(pids).size).toBe(2)
    expect(probe.processes.map(({ pid }) => pid).sort()).toEqual(pids.sort())
    await probe.stop()
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false])
  })

  it('reports a bundle that does not load', async () => {
    expect((await makeFunction([], 5, 'broken.mjs').invoke()).error).toEqual({ name: 'Error', message: 'no such setting' })
    expect((await makeFunction([], 5, 'absent.mjs').invoke()).error).toMatchObject({
      message: expect.stringContaining('absent.mjs') as string,
    })
  })
})
