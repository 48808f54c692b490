import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { EventAnswer } from '../../../chaos/answers.js'
import { readCounts, readGauges, type Query } from '../../../chaos/evidence.js'
import { operate } from '../../../chaos/operators.js'
import { SqlError, type SqlFailureKind } from '../../../src/core/errors.js'
import { measureBacklog } from '../../../src/core/measure-backlog.js'
import { metricCatalogue } from '../../../src/telemetry/metrics.js'

/** A database in which nothing happened: each column that a statement names is 0. */
const nothing: Query = <Row>(sql: string) =>
  Promise.resolve([Object.fromEntries([...sql.matchAll(/AS "(\w+)"/g)].map(([, name]) => [name!, 0])) as Row])
const missing: EventAnswer = { eventId: 'a', atMs: 1, kind: 'missing', code: 'UnknownEntry', besideAccepted: true }

describe('the evidence', () => {
  it('has each gauge that the monitor emits', async () => {
    const emitted: string[] = []
    const backlog = { ageSeconds: 0, depth: 0, scheduled: 0, backingOff: 0, held: 0, failed: 0, blockedKeys: 0 }
    const rest = { oldestFailedSeconds: 0, leasedShards: 0, openCircuits: 0, misconfiguredDestinations: 0 }
    await measureBacklog({
      store: { backlog: () => Promise.resolve({ ...backlog, ...rest }) },
      telemetry: { metric: (name) => emitted.push(name), log: () => undefined, flush: () => undefined },
      deadline: { remainingMs: () => 1 },
    })
    expect(Object.keys(await readGauges(nothing)).sort()).toEqual(emitted.sort())
  })

  it('has each counter that the document says is held to what happened', async () => {
    const document = await readFile(new URL('../../../docs/chaos.md', import.meta.url), 'utf8')
    const [row = ''] = document.split('\n').filter((line) => line.includes('never count more than happened'))
    const named = [...row.matchAll(/`([A-Z]\w+)`/g)].map(([, name]) => name!)
    const counts = await readCounts(nothing, [], () => 1)
    expect(counts.map(({ name }) => name).sort()).toEqual(named.sort())
    expect(counts).toEqual(counts.map(({ name }) => ({ name, counted: 1, happened: 0 })))
    expect(named.filter((name) => !(name in metricCatalogue))).toEqual([])
  })

  it('counts the entries that answers did not name', async () => {
    const answers = [missing, { ...missing, kind: 'refused' as const }, missing]
    const counts = await readCounts(nothing, answers, () => 3)
    expect(counts).toContainEqual({ name: 'UnknownEntries', counted: 3, happened: 2 })
  })
})

describe('an act of an operator', () => {
  const call = { action: 'redrive', maxRows: 1, destination: undefined } as const
  const failed: Query = <Row>() => Promise.resolve([{ chances: 2 } as Row])
  const failing = (error: Error) => operate({ execute: () => Promise.reject(error) }, failed, call)
  const sqlError = (kind: SqlFailureKind) => new SqlError(kind, 'no', { errorName: 'DatabaseErrorException' })

  it('may fail as anything does while the database is down', async () => {
    for (const kind of ['not-executed', 'rolled-back', 'ambiguous', 'transaction-lost'] as const)
      expect(await failing(sqlError(kind))).toEqual({ action: 'redrive', chances: 2, events: null, failure: null })
  })

  it('keeps why it failed otherwise', async () => {
    expect(await failing(sqlError('permanent'))).toMatchObject({ events: null, failure: 'SqlError: no' })
    expect(await failing(new TypeError('bug'))).toMatchObject({ failure: 'TypeError: bug' })
  })
  it('has no chance to change anything while the database is down', async () => {
    const down: Query = () => Promise.reject(new Error('terminating connection'))
    const execute = () => Promise.resolve({ rows: [{ events: 3 }], updatedRows: 0, repeated: false })
    expect(await operate({ execute }, down, call)).toEqual({ action: 'redrive', chances: 0, events: 3, failure: null })
  })
})
