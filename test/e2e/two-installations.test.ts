import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LocalFunction } from '../../src/local/lambda/local-function.js'
import { DATABASE, loginSecretArn, RESOURCE_ARN } from '../../src/local/stack/database.js'
import { startLocalStack, type LocalStack } from '../../src/local/stack.js'
import { handlerProcess, repeat, type HandlerProcessOptions } from '../support/handler-process.js'
import { runOutbox } from '../support/outbox-command.js'

const passSeconds = 5

/** The local stack's own installation is `local`; a second one, `shop`, comes to the same outbox, with another queue. */
describe('a second installation on an outbox', () => {
  let stack: LocalStack
  let client: pg.Client
  const handlers: LocalFunction[] = []
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0, relays: 0, log: () => undefined })
    client = new pg.Client({ connectionString: stack.description.databaseUrl })
    await client.connect()
  }, 120_000)
  afterAll(async () => {
    await Promise.all(handlers.map((one) => one.stop()))
    await client.end()
    await stack.stop()
  })

  function start(
    installation: 'local' | 'shop',
    handler: HandlerProcessOptions['handler'],
    settings: object = {},
  ): LocalFunction {
    const { endpoint, queues } = stack.description
    const name = installation === 'local' ? 'queue' : 'bus-target'
    const relay = {
      destinations: { [name]: { type: 'sqs', queueUrl: queues[name]! } },
      settings: { passSeconds, idleWaitMs: 50 },
    } as const
    const started = handlerProcess({
      handler,
      endpoint,
      installation,
      ...(handler === 'relay' ? relay : { settings: { ...settings } }),
    })
    handlers.push(started)
    return started
  }
  const write = (eventType: string) => client.query(`INSERT INTO outbox (event_type, payload) VALUES ($1, '{}')`, [eventType])
  const publishedTo = async (eventType: string) =>
    (
      await client.query<{ to: string }>(
        'SELECT r.destination AS "to" FROM outbox_receipt r JOIN outbox o ON o.id = r.event_id WHERE o.event_type = $1',
        [eventType],
      )
    ).rows.map(({ to }) => to)
  const reason = async (handler: LocalFunction) => (await handler.invoke()).error?.message
  const refused = (by: string, other: string) =>
    `the outbox in schema "public" is served by installation "${by}", so "${other}" must not deliver from it`

  it('is refused with both names: its migration, so its deployment, and each of its functions', async () => {
    expect(await reason(start('shop', 'migrate'))).toBe(
      `${refused('local', 'shop')}: to take it over, set takeOverFrom (--take-over-from) to "local"; else use another schema`,
    )
    await write('Before')
    for (const handler of ['relay', 'cleanup', 'monitor'] as const)
      expect(await reason(start('shop', handler)), handler).toBe(refused('local', 'shop'))
    expect(await publishedTo('Before')).toEqual([])
  })

  it('takes it over if told from whom; the relay of before ends within the pass that is under way, and then refuses with both names', async () => {
    const before = repeat(start('local', 'relay'))
    await write('Shared')
    await expect.poll(() => publishedTo('Shared'), { timeout: 60_000 }).toEqual(['queue'])

    const taken = await start('shop', 'migrate', { takeOverFrom: 'local' }).invoke()
    const takenAtMs = performance.now()
    expect(taken.error).toBeNull()
    expect(taken.result).toMatchObject({ installation: 'shop', applied: [] })
    const now = repeat(start('shop', 'relay'))

    await before.ended
    const last = before.results.at(-1)!
    expect(last.error).toMatchObject({ name: 'SchemaError', message: refused('shop', 'local') })
    expect(last.logs.some((line) => line.includes('"schema-refused"'))).toBe(true)
    // no invocation that began afterwards did anything, and the one before it had no more than its time
    expect(before.results.filter(({ begunAtMs, error }) => begunAtMs > takenAtMs && error === null)).toEqual([])
    const under = before.results.at(-2)
    expect(under?.error).toBeNull()
    expect(under!.durationMs).toBeLessThan((passSeconds + 30) * 1000)

    await write('After')
    await expect.poll(() => publishedTo('After'), { timeout: 60_000 }).toEqual(['bus-target'])
    await now.finish()
    for (const handler of ['cleanup', 'monitor', 'migrate'] as const)
      expect(await reason(start('local', handler)), handler).toContain(refused('shop', 'local'))
  })

  it('gives it back in the same way, by the command', async () => {
    const { endpoint } = stack.description
    const migrate = (...more: readonly string[]) =>
      runOutbox(['migrate', '--json', ...more], {
        AWS_ENDPOINT_URL: endpoint,
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'local',
        AWS_SECRET_ACCESS_KEY: 'local',
        OUTBOX_CLUSTER_ARN: RESOURCE_ARN,
        OUTBOX_SECRET_ARN: loginSecretArn('owner'),
        OUTBOX_DATABASE: DATABASE,
      })
    const refusedBack = await migrate('--installation', 'local')
    expect(refusedBack).toMatchObject({ out: '', code: 4 })
    expect(refusedBack.err).toContain(refused('shop', 'local'))
    const unnamed = await migrate('--take-over-from', 'shop')
    expect(unnamed.err).toContain('--take-over-from is "shop", but --installation is not set')

    const { code, out } = await migrate('--installation', 'local', '--take-over-from', 'shop')
    expect([code, JSON.parse(out)]).toMatchObject([0, { installation: 'local' }])
    expect(await reason(start('shop', 'relay'))).toBe(refused('local', 'shop'))
    expect((await start('local', 'relay').invoke()).error).toBeNull()
  })
})
