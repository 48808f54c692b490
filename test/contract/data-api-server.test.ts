import { describe, expect, it } from 'vitest'
import type { Field } from '@aws-sdk/client-rds-data'
import { startTestDataApi } from '../support/data-api.js'
import { dataApiClient, failure, parameter } from '../support/data-api-client.js'

const api = await startTestDataApi()
const { execute, value, batch } = dataApiClient(api)
const ID = '0197f3a2-0000-7000-8000-000000000001'

const sqlState = async (call: Promise<unknown>) => /; SQLState: (\w{5})$/.exec((await failure(call)).message)?.[1]

describe('parameters have the type of their wire form', () => {
  const types: readonly [Field, string][] = [
    [{ stringValue: 'x' }, 'text'],
    [{ longValue: 1 }, 'bigint'],
    [{ booleanValue: true }, 'boolean'],
    [{ doubleValue: 1.5 }, 'double precision'],
    [{ blobValue: Buffer.from('x') }, 'bytea'],
  ]
  it.each(types)('%j is a PostgreSQL %s', async (field, type) => {
    const got = await value('SELECT pg_typeof(:p)::text', { parameters: [parameter('p', field)] })
    expect(got).toEqual({ stringValue: type })
  })

  it.each([
    ['DATE', 'date', '2026-11-29'],
    ['DECIMAL', 'numeric', '12.50'],
    ['JSON', 'json', '{"a":1}'],
    ['TIME', 'time without time zone', '10:00:00.123'],
    ['TIMESTAMP', 'timestamp without time zone', '2026-11-29 10:00:00.123'],
    ['UUID', 'uuid', ID],
  ] as const)('the hint %s makes a string a PostgreSQL %s', async (hint, type, text) => {
    const parameters = [parameter('p', { stringValue: text }, hint)]
    expect(await value('SELECT pg_typeof(:p)::text', { parameters })).toEqual({ stringValue: type })
  })

  it('a string does not turn into a uuid without a cast or a hint', async () => {
    await execute('CREATE TABLE typed (id uuid, at timestamptz, body jsonb, amount numeric, number int, note text)')
    const text = { parameters: [parameter('p', { stringValue: ID })] }
    expect(await failure(execute('INSERT INTO typed (id) VALUES (:p)', text))).toMatchObject({
      name: 'DatabaseErrorException',
      status: 400,
      message: `ERROR: column "id" is of type uuid but expression is of type text\n  Hint: You will need to rewrite or cast the expression.; SQLState: 42804`,
    })
    expect(await sqlState(execute('SELECT 1 FROM typed WHERE id = :p', text))).toBe('42883')
    await execute('INSERT INTO typed (id) VALUES (CAST(:p AS uuid))', text)
    await execute('INSERT INTO typed (id) VALUES (:p::uuid)', text)
    await execute('INSERT INTO typed (id) VALUES (:p)', { parameters: [parameter('p', { stringValue: ID }, 'UUID')] })
    expect(await value('SELECT count(*) FROM typed')).toEqual({ longValue: 3 })
  })

  it.each(['at', 'body', 'number'])('nor into the type of column %s', async (column) => {
    const parameters = [parameter('p', { stringValue: '1' })]
    expect(await sqlState(execute(`INSERT INTO typed (${column}) VALUES (:p)`, { parameters }))).toBe('42804')
  })

  it('null takes the type that its place asks for', async () => {
    const parameters = [parameter('p', { isNull: true })]
    await execute('INSERT INTO typed (id, at, body, amount, number, note) VALUES (:p, :p, :p, :p, :p, :p)', { parameters })
    expect(await value('SELECT CAST(:p AS uuid)', { parameters })).toEqual({ isNull: true })
  })

  it('an int8 arrives with all its digits', async () => {
    const parameters = [parameter('p', { longValue: 9007199254740991 })]
    expect(await value('SELECT (:p * 1024)::text', { parameters })).toEqual({ stringValue: '9223372036854774784' })
    const body = { resourceArn: api.resourceArn, secretArn: api.secretArn, database: api.database, sql: 'SELECT :p' }
    const raw = JSON.stringify({ ...body, parameters: [{ name: 'p', value: { longValue: 1 } }] })
    const headers = { authorization: 'any', 'content-type': 'application/json' }
    const sent = { method: 'POST', headers, body: raw.replace('"longValue":1', '"longValue": 9223372036854775807') }
    const answer = await fetch(`${api.endpoint}/Execute`, sent)
    expect(await answer.text()).toContain('"longValue":9223372036854775807')
  })

  it.each(['2026-11-29T10:00:00', '2026-11-29 10:00:00Z', '2026-11-29 10:00:00.123456'])(
    'the timestamp %s is refused',
    async (text) => {
      const parameters = [parameter('p', { stringValue: text }, 'TIMESTAMP')]
      expect(await failure(execute('SELECT :p', { parameters }))).toMatchObject({ name: 'ValidationException', status: 400 })
    },
  )

  it('an array parameter is refused', async () => {
    const parameters = [parameter('p', { arrayValue: { longValues: [1, 2] } })]
    expect(await failure(execute('SELECT :p', { parameters }))).toMatchObject({
      name: 'ValidationException',
      message: 'Array parameters are not supported.',
    })
  })

  it('a parameter that the call does not give is an error', async () => {
    expect(await failure(execute('SELECT :missing'))).toMatchObject({
      name: 'ValidationException',
      message: 'Cannot find parameter: missing',
    })
  })

  it('one that appears twice is bound twice, and each may have another type', async () => {
    const parameters = [parameter('p', { stringValue: '7' })]
    const { records } = await execute('SELECT :p::int, :p::text', { parameters })
    expect(records).toEqual([[{ longValue: 7 }, { stringValue: '7' }]])
  })

  it('a colon in a literal, a name, a comment, a cast or a dollar quote is no parameter', async () => {
    const sql = `SELECT '12:30'::text || E'it\\'s :a' || $$ :b $$ || $t$ $$ :c $t$ AS "x:d" -- :e
      /* :f /* :g */ :h */`
    expect((await execute(sql, { includeResultMetadata: true })).columnMetadata?.[0]?.label).toBe('x:d')
    expect(await value(sql)).toEqual({ stringValue: "12:30it's :a :b  $$ :c " })
  })

  it("a driver's own placeholder is an error, as nothing is ever bound to it", async () => {
    const parameters = [parameter('p', { longValue: 1 })]
    expect(await sqlState(execute('SELECT $1::bigint, :p', { parameters }))).toBe('42P02')
  })
})

describe('one statement a call', () => {
  it('two statements are refused, and neither has an effect', async () => {
    await execute('CREATE TABLE once (n int)')
    const two = 'INSERT INTO once VALUES (1); INSERT INTO once VALUES (2)'
    const refusal = { name: 'ValidationException', status: 400, message: "Multistatements aren't supported." }
    expect(await failure(execute(two))).toMatchObject(refusal)
    expect(await failure(execute(two.replace('1', ':p'), { parameters: [parameter('p', { longValue: 1 })] }))).toMatchObject(
      refusal,
    )
    expect(await value('SELECT count(*) FROM once')).toEqual({ longValue: 0 })
  })

  it('semicolons in a function body, a literal or a comment, and one at the end, are none', async () => {
    await execute(`CREATE FUNCTION three() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN PERFORM 1; RETURN 3; END; $f$;`)
    await execute(`CREATE FUNCTION four() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 4; END`)
    expect(await value(`SELECT three() + four() /* ; */ WHERE ';' = ';' -- ;`)).toEqual({ longValue: 7 })
  })

  it('nothing of a session survives a call', async () => {
    await execute(`SET work_mem = '5MB'`)
    await execute('CREATE TEMP TABLE gone (n int)')
    await execute('SELECT pg_advisory_lock(1)::text')
    await expect
      .poll(() =>
        api.db.query(
          `SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND datname = current_database()`,
        ),
      )
      .toEqual([])
    for (let call = 0; call < 5; call++) expect(await value('SHOW work_mem')).toEqual({ stringValue: '4MB' })
    expect(await sqlState(execute('SELECT * FROM gone'))).toBe('42P01')
  })

  it('a BEGIN outside of the transaction calls opens nothing', async () => {
    await execute('BEGIN')
    await execute('INSERT INTO once VALUES (3)')
    await expect.poll(() => api.db.query('SELECT n FROM once')).toEqual([{ n: 3 }])
    await expect
      .poll(() => api.db.query(`SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in%' AND datname = current_database()`))
      .toEqual([])
  })
})

describe('results', () => {
  it('come as their type asks', async () => {
    const sql = `SELECT true, 1::int2, 2::int4, 3::int8, 1.5::float4, 2.5::float8, 12.50::numeric, 'x'::text, 'y'::varchar, 'z'::char(3),
      '${ID}'::uuid, '{"b":1, "a":2}'::json, '{"b":1, "a":2}'::jsonb, '2026-11-29'::date, '10:00:01'::time, '\\x00ff'::bytea, NULL,
      ARRAY[1,2], ARRAY['a b','c,"d"'], ARRAY[true], ARRAY[]::text[]`
    const { records } = await execute(sql)
    expect(records?.[0]).toEqual([
      ...[
        { booleanValue: true },
        { longValue: 1 },
        { longValue: 2 },
        { longValue: 3 },
        { doubleValue: 1.5 },
        { doubleValue: 2.5 },
      ],
      ...['12.50', 'x', 'y', 'z  ', ID, '{"b":1, "a":2}', '{"a": 2, "b": 1}', '2026-11-29', '10:00:01'].map((text) => ({
        stringValue: text,
      })),
      { blobValue: new Uint8Array([0, 255]) },
      { isNull: true },
      { arrayValue: { longValues: [1, 2] } },
      { arrayValue: { stringValues: ['a b', 'c,"d"'] } },
      { arrayValue: { booleanValues: [true] } },
      { arrayValue: { stringValues: [] } },
    ])
  })

  it('show a timestamp with time zone in UTC and without a zone', async () => {
    const sql = `SELECT '2024-03-10 06:49:00.120-05'::timestamptz, '2024-03-10 06:49:00'::timestamp`
    expect((await execute(sql)).records).toEqual([
      [{ stringValue: '2024-03-10 11:49:00.12' }, { stringValue: '2024-03-10 06:49:00' }],
    ])
  })

  it('return integers as text if asked', async () => {
    const resultSetOptions = { longReturnType: 'STRING' } as const
    const { records } = await execute('SELECT 9007199254740993, 1::int2, 2::int4', { resultSetOptions })
    expect(records).toEqual([[{ stringValue: '9007199254740993' }, { stringValue: '1' }, { stringValue: '2' }]])
  })

  it('return decimals as numbers if asked', async () => {
    const resultSetOptions = { decimalReturnType: 'DOUBLE_OR_LONG' } as const
    expect(await value('SELECT 12.50', { resultSetOptions })).toEqual({ doubleValue: 12.5 })
  })

  it('carry enums as text', async () => {
    await execute(`CREATE TYPE mood AS ENUM ('calm', 'loud')`)
    expect(await value(`SELECT 'calm'::mood`)).toEqual({ stringValue: 'calm' })
  })

  it.each([
    `'x'::"char"`,
    `'int4'::regtype`,
    '1::money',
    `point '1,2'`,
    `interval '1 day'`,
    `'<a/>'::xml`,
    'ROW(1, 2)',
    `ARRAY['${ID}'::uuid]`,
    'pg_sleep(0)',
  ])('refuse %s, a type that the Data API does not return', async (expression) => {
    expect(await failure(execute(`SELECT ${expression}`))).toMatchObject({
      name: 'UnsupportedResultException',
      status: 400,
      message: expect.stringContaining('unsupported data type') as string,
    })
  })

  it('refuse an array of two dimensions', async () => {
    expect((await failure(execute('SELECT ARRAY[[1],[2]]'))).name).toBe('UnsupportedResultException')
  })

  it('describe their columns only if asked', async () => {
    await execute('CREATE TABLE described (id int PRIMARY KEY, big bigint, note text)')
    expect((await execute('SELECT * FROM described')).columnMetadata).toBeUndefined()
    const { columnMetadata } = await execute('SELECT id, big, note AS remark, 1 AS one FROM described', {
      includeResultMetadata: true,
    })
    expect(columnMetadata).toMatchObject([
      { name: 'id', label: 'id', typeName: 'int4', type: 4, nullable: 0, tableName: 'described', isSigned: true },
      { name: 'big', label: 'big', typeName: 'int8', type: -5, nullable: 1 },
      { name: 'remark', label: 'remark', typeName: 'text', type: 12, nullable: 1, isSigned: false },
      { name: 'one', label: 'one', typeName: 'int4', nullable: 2, tableName: '' },
    ])
  })

  it('count the rows that a statement changed, and have no generated fields', async () => {
    await execute('CREATE TABLE counted (n int)')
    const inserted = await execute('INSERT INTO counted SELECT generate_series(1, 3) RETURNING n')
    expect(inserted).toMatchObject({
      numberOfRecordsUpdated: 3,
      generatedFields: [],
      records: [[{ longValue: 1 }], [{ longValue: 2 }], [{ longValue: 3 }]],
    })
    const updated = await execute('UPDATE counted SET n = 0 WHERE n < 3')
    expect(updated).toMatchObject({ numberOfRecordsUpdated: 2, generatedFields: [] })
    expect(updated.records).toBeUndefined()
    expect(await execute('SELECT * FROM counted')).toMatchObject({ numberOfRecordsUpdated: 0 })
  })

  it('come as JSON if asked, for a SELECT only', async () => {
    const formatRecordsAs = 'JSON'
    const selected = await execute(`SELECT 9007199254740993 AS big, 'a"b' AS text, NULL AS nothing, ARRAY[1,2] AS list`, {
      formatRecordsAs,
      includeResultMetadata: true,
    })
    expect(selected.formattedRecords).toBe(`[{"big":9007199254740993,"text":"a\\"b","nothing":null,"list":[1,2]}]`)
    expect(selected.records).toBeUndefined()
    expect(selected.columnMetadata).toBeUndefined()
    const updated = await execute('UPDATE counted SET n = 9 WHERE n = 3 RETURNING n', { formatRecordsAs })
    expect(updated.formattedRecords).toBeUndefined()
    expect(updated.records).toEqual([[{ longValue: 9 }]])
  })
})

describe('a batch', () => {
  const set = (n: number) => [parameter('n', { longValue: n })]

  it('runs one statement for each set, and reports no counts', async () => {
    await execute('CREATE TABLE batched (n int PRIMARY KEY)')
    const answer = await batch('INSERT INTO batched VALUES (:n)', { parameterSets: [set(1), set(2)] })
    expect(answer).toMatchObject({ updateResults: [{ generatedFields: [] }, { generatedFields: [] }] })
    expect(await value('SELECT count(*) FROM batched')).toEqual({ longValue: 2 })
  })

  it('outside of a transaction keeps what it did before the set that failed', async () => {
    expect(await sqlState(batch('INSERT INTO batched VALUES (:n)', { parameterSets: [set(3), set(1), set(4)] }))).toBe('23505')
    expect(await api.db.query('SELECT n FROM batched ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  it('does not take a semicolon at the end', async () => {
    const call = batch('INSERT INTO batched VALUES (:n); ', { parameterSets: [set(5)] })
    expect((await failure(call)).name).toBe('ValidationException')
  })
})
