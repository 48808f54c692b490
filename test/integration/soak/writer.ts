import { setTimeout as pause } from 'node:timers/promises'
import type { SoakRun } from './soak-run.js'

const keys = 500

/** Writes its share in transactions of one to four statements, some rolled back, keys hot and cold, 5 % scheduled. */
export async function write(run: SoakRun, share: number): Promise<void> {
  const { session } = await run.actor()
  await session.query(`SET deadlock_timeout = '25ms'`)
  for (let written = 0; written < share;) {
    try {
      await session.query('BEGIN')
      const ids: string[] = []
      const statements = run.random() < 0.8 ? 1 : 2 + run.below(3)
      for (let statement = 0; statement < statements; statement++) {
        const inserted = await insert(run, session)
        ids.push(...inserted)
        if (run.strikes(0.1)) await pause(run.random() * 4)
      }
      if (run.random() < 0.2) {
        await session.query('ROLLBACK')
        run.count('rollbacks')
      } else {
        await session.query('COMMIT')
        for (const id of ids) run.committed.add(id)
        written += ids.length
      }
    } catch (error) {
      run.fault('writer', error)
      await session.query('ROLLBACK')
    }
    // spread over the chaos: a transaction has about nine events, three writers are at work
    if (run.chaos) await pause(((run.random() * run.chaosSeconds * 1000 * 27) / run.events) * 0.7)
  }
}

async function insert(run: SoakRun, session: Awaited<ReturnType<SoakRun['actor']>>['session']): Promise<string[]> {
  const chosen = Array.from({ length: 1 + run.below(12) }, () =>
    run.random() < 0.15 ? null : `k${run.below(run.random() < 0.3 ? 20 : keys)}`,
  )
  const isScheduled = run.random() < 0.05
  const rows = await session.query<{ id: string }>(
    `INSERT INTO outbox (event_type, payload, ordering_key, destination, available_at)
     SELECT 't', '{"a":1}', k, CASE WHEN random() < 0.2 THEN 'A' ELSE 'B' END, ${isScheduled ? `now() + interval '300 milliseconds'` : 'NULL'}
       FROM unnest(CAST($1 AS text[])) k RETURNING CAST(id AS text) AS id`,
    [chosen],
  )
  if (isScheduled) for (const { id } of rows) run.scheduled.add(id)
  return rows.map(({ id }) => id)
}
