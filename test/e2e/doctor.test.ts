import { describe, expect, it } from 'vitest'
import { id, operatorRig } from '../support/operator-rig.js'
import { runOutbox } from '../support/outbox-command.js'

const { run, faults, relay, write, statuses, audit, take, query, description, environment } = operatorRig()

describe('doctor', () => {
  interface Diagnosis {
    readonly ok: boolean
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly text: string }[]
  }
  const diagnose = async (...args: string[]) => {
    const { code, out } = await run('doctor', '--json', ...args)
    const { ok, checks } = JSON.parse(out) as Diagnosis
    expect(code).toBe(ok ? 0 : 1)
    return { ok, checks, problems: checks.filter((check) => !check.ok).map(({ name, text }) => `${name}: ${text}`) }
  }

  it('finds nothing wrong with a healthy outbox, and says what it looked at', async () => {
    await write(1)
    const { problems, checks } = await diagnose()
    expect(problems).toEqual([])
    expect(checks.map(({ name }) => name)).toEqual([
      'settings',
      'database',
      'schema',
      'installation',
      'rights',
      'clock',
      'trigger',
      'stuck',
      'leases',
      'orphans',
      'circuits',
      'aside',
      'vacuum',
      'stateless',
    ])
    const { out } = await run('doctor')
    expect(out).toMatch(/^clock +ok: the database is \d+ ms (behind|ahead of) this machine$/m)
    expect(out.trimEnd().split('\n')).toHaveLength(14)
  })

  it('names events that are stuck, leases that are long over, and rows whose event is gone', async () => {
    await write(1)
    await write(2)
    await query("UPDATE outbox_delivery SET due_at = now() - interval '11 minutes'")
    await query('DELETE FROM outbox WHERE id = $1', [id(2)])
    await query(
      "UPDATE outbox_shard SET lease_token = gen_random_uuid(), lease_until = now() - interval '11 minutes' WHERE shard = 3",
    )
    const { problems } = await diagnose()
    expect(problems).toEqual([
      expect.stringMatching(/^stuck: 2 events due for more than 10 minutes/) as string,
      expect.stringMatching(/^leases: 1 lease ran out more than 10 minutes ago/) as string,
      expect.stringMatching(/^orphans: 1 event deleted by hand/) as string,
    ])
    // a relay that serves the shards is no reason to worry
    await query("UPDATE outbox_shard SET lease_until = now() + interval '1 minute'")
    expect((await diagnose()).problems).toHaveLength(1)
    await query("UPDATE outbox_shard SET lease_token = NULL, lease_until = '-infinity'")
  })

  it('names open circuits with their error and what is aside, events aside without a circuit, and a transaction open for long', async () => {
    await faults({ service: 'sqs', fault: { kind: 'error', name: 'AccessDenied', status: 403, message: 'not you' } })
    for (const nth of [1, 2, 3]) await write(nth)
    await relay()
    await relay()
    const open = (await diagnose()).problems
    expect(open).toEqual([
      expect.stringMatching(
        /^circuits: "queue": open for .*, \d+ faults?, tried .*; [12] events? aside; AccessDenied: .*; see "Destination misconfigured" in docs\/runbook\.md$/,
      ) as string,
    ])
    await query(`DELETE FROM outbox_circuit`)
    expect((await diagnose()).problems).toEqual([
      expect.stringMatching(/^aside: "queue": no circuit, and [12] events? aside that nobody brings back; INSERT INTO/) as string,
    ])
    await query(`INSERT INTO outbox_circuit (destination) VALUES ('queue')`)
    expect((await diagnose()).problems).toEqual([])

    // nobody can make a transaction older than it is: so its age is told 11 minutes too high
    await query('ALTER FUNCTION outbox_doctor RENAME TO outbox_doctor_of_now')
    await query(
      `CREATE FUNCTION outbox_doctor(p integer) RETURNS TABLE (trigger_on boolean, stuck bigint, expired_leases bigint, orphans bigint,
         oldest_transaction_ms bigint, dead_rows bigint) LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS
         'SELECT trigger_on, stuck, expired_leases, orphans, oldest_transaction_ms + 660000, dead_rows FROM outbox_doctor_of_now(p)'`,
    )
    try {
      expect((await diagnose()).problems).toEqual([
        expect.stringMatching(
          /^vacuum: a transaction is open for 11 minutes, .*; \d+ dead rows? in the queue; find it in/,
        ) as string,
      ])
    } finally {
      await query('DROP FUNCTION outbox_doctor')
      await query('ALTER FUNCTION outbox_doctor_of_now RENAME TO outbox_doctor')
    }
  })

  it('finds the trigger off and what was written meanwhile, queues it on request with an audit row, and the relay delivers it', async () => {
    await query('ALTER TABLE outbox DISABLE TRIGGER outbox_enqueue')
    try {
      await write(1)
      await write(2)
      expect((await diagnose()).problems).toEqual([
        expect.stringMatching(/^trigger: off/) as string,
        expect.stringMatching(/^stateless: 2 events in no state/) as string,
      ])
    } finally {
      await query('ALTER TABLE outbox ENABLE TRIGGER outbox_enqueue')
    }
    expect(await statuses()).toEqual({ 1: 'unknown', 2: 'unknown' })
    await faults({ service: 'rds-data', match: 'outbox_repair', times: 2, fault: { kind: 'drop-reply' } })
    const { ok, checks } = await diagnose('--repair', '--reason', 'the trigger was off')
    expect(ok).toBe(true)
    expect(checks.at(-1)?.text).toBe('2 events queued now; 0 events in no state')
    expect(await audit()).toMatchObject([
      {
        actor: 'arn:aws:iam::000000000000:user/ann',
        action: 'repair',
        reason: 'the trigger was off',
        events: 2,
        event_ids: [id(1), id(2)],
      },
    ])
    await relay()
    expect([...(await take('queue', 2))].sort()).toEqual([id(1), id(2)])
  })

  /** `outbox doctor` in a process whose clock is wrong. */
  const diagnoseAt = async (shiftMs: number) => {
    const { code, out } = await runOutbox(['doctor'], {
      ...environment(),
      NODE_OPTIONS: `--import=${new URL('../../chaos/shifted-clock.mjs', import.meta.url).href}`,
      OUTBOX_CHAOS_CLOCK_SHIFT_MS: String(shiftMs),
    })
    const lines = out.trimEnd().split('\n')
    expect(lines).toHaveLength(14)
    const clock = lines.find((line) => line.startsWith('clock ')) ?? ''
    const [, verdict, ms, direction, advice] =
      /^clock +(ok|problem): the database is (\d+) ms (behind|ahead of) this machine(.*)$/.exec(clock) ?? []
    // as far off as it was made, but for the time that the answer took
    expect(Math.abs(Number(ms) - Math.abs(shiftMs)), clock).toBeLessThan(5000)
    expect(lines.filter((line) => line !== clock && !/^\w+ +ok: /.test(line))).toEqual([])
    return { code, verdict, direction, advice }
  }

  it.each([
    ['three hours ahead', 10_800_000, 'behind'],
    ['three hours behind', -10_800_000, 'ahead of'],
    ['half a minute ahead', 30_000, 'behind'],
    ['half a minute behind', -30_000, 'ahead of'],
  ])('finds that the clock of its machine is %s, and says what goes by which clock', async (_, shiftMs, direction) => {
    expect(await diagnoseAt(shiftMs)).toEqual({
      code: 1,
      verdict: 'problem',
      direction,
      advice: "; delivery goes by the database's clock, AWS refuses requests signed 5 minutes off",
    })
  })

  it.each([
    ['ahead', 4000, 'behind'],
    ['behind', -4000, 'ahead of'],
  ])('is content with a machine whose clock is four seconds %s', async (_, shiftMs, direction) => {
    expect(await diagnoseAt(shiftMs)).toEqual({ code: 0, verdict: 'ok', direction, advice: '' })
  })

  it('says what is wrong with settings, database, schema, installation and rights, and what to do', async () => {
    const problemsWith = async (...args: string[]) => (await diagnose(...args)).problems
    expect(await problemsWith('--cluster-arn', 'orders')).toEqual([
      expect.stringMatching(/^settings: --cluster-arn is wrong: must be the ARN/) as string,
    ])
    expect(await problemsWith('--database', 'nothing')).toEqual([expect.stringMatching(/^database: .*nothing/) as string])
    expect(await problemsWith('--schema', 'pg_catalog')).toEqual([
      expect.stringMatching(/^schema: there is no outbox here, run "outbox migrate"/) as string,
    ])
    const [{ installation } = {}] = (await query<{ installation: string }>('SELECT installation FROM outbox_meta')).rows
    environment()['OUTBOX_INSTALLATION'] = 'another'
    try {
      expect(await problemsWith()).toEqual([
        `installation: "${installation}", but OUTBOX_INSTALLATION is "another"; is this the right database?`,
      ])
    } finally {
      delete environment()['OUTBOX_INSTALLATION']
    }
    const relaySecret = description().secretArn.replace(/secret:.*$/, 'secret:outbox/relay-Local1')
    expect(await problemsWith('--secret-arn', relaySecret)).toEqual([
      expect.stringMatching(/^rights: user "\w+" is not in outbox_operator/) as string,
      expect.stringMatching(/^trigger: .*permission denied/) as string,
    ])
  })
})
