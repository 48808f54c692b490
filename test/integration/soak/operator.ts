import { setTimeout as pause } from 'node:timers/promises'
import { backlog, operate, repair, replay, unhold } from '../../support/outbox-sql.js'
import type { SoakRun } from './soak-run.js'

/** Brings destinations back, redrives, discards, releases, replays and repairs beside the relays. */
export async function operator(run: SoakRun): Promise<void> {
  const actor = await run.actor()
  const pick = async (sql: string) => {
    const rows = await run.call(actor, 'pick', (session) => session.query<{ id: string }>(sql))
    return (rows ?? []).map(({ id }) => id)
  }
  for (let round = 1; !run.stopped; round++) {
    await pause(run.chaos ? 60 : 20)
    if (round % 4 === 0 || !run.chaos) {
      run.count('unheld', (await run.call(actor, 'unhold', (session) => unhold(session, 'A', run.chaos ? 50 : 1000))) ?? 0)
    }
    const failed = await pick(
      `SELECT CAST(event_id AS text) AS id FROM outbox_delivery WHERE failed_at IS NOT NULL ORDER BY random() LIMIT ${run.chaos ? 6 : 1000}`,
    )
    if (failed.length > 0) {
      const action = run.chaos ? (['redrive', 'discard', 'release'] as const)[run.below(3)]! : 'redrive'
      if (action !== 'redrive') failed.forEach((id) => run.pass(id))
      run.count(action, (await run.call(actor, action, (session) => operate(session, action, { ids: failed }))) ?? 0)
    }
    if (run.chaos && round % 5 === 0) {
      const delivered = await pick(
        `SELECT CAST(event_id AS text) AS id FROM outbox_receipt WHERE NOT discarded ORDER BY random() LIMIT 4`,
      )
      if (delivered.length > 0) {
        run.count('replayed', (await run.call(actor, 'replay', (session) => replay(session, { ids: delivered }))) ?? 0)
      }
    }
    if (round % 20 === 0) {
      const repaired = await run.call(actor, 'repair', (session) => repair(session, null, { rows: 100_000 }))
      run.count('repaired', repaired?.stateless ?? 0)
      await run.call(actor, 'backlog', (session) => backlog(session))
    }
  }
}
