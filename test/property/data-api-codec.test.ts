import { RDSDataClient } from '@aws-sdk/client-rds-data'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDataApiDatabase } from '../../src/data-api/database.js'

/** An SDK client whose transport answers every parameter back as a column, its digits untouched by any JSON parser. */
function echoing(): RDSDataClient {
  const handle = (request: { body: Uint8Array | string }) => {
    const sent = typeof request.body === 'string' ? request.body : new TextDecoder().decode(request.body)
    const longs = /"longValue":(-?\d+)/.exec(sent)?.[1]
    const field =
      longs === undefined
        ? (JSON.parse(sent) as { parameters: { value: object }[] }).parameters[0]!.value
        : { stringValue: longs }
    const body = JSON.stringify({
      columnMetadata: [{ name: 'it', label: 'it', typeName: longs === undefined ? 'text' : 'int8' }],
      records: [[field]],
    })
    return Promise.resolve({
      response: { statusCode: 200, headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode(body) },
    })
  }
  return new RDSDataClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
    requestHandler: { handle } as never,
  })
}

const database = createDataApiDatabase({
  client: echoing(),
  resourceArn: 'arn:cluster',
  secretArn: 'arn:secret',
  database: 'orders',
})
const roundTrip = async (it: string | bigint | number | boolean | null) =>
  (await database.execute({ sql: 'SELECT :it', parameters: { it }, repeatable: true })).rows[0]?.['it']

describe('A parameter and its column are the same value', () => {
  test('for every 64-bit integer', async () => {
    await fc.assert(
      fc.asyncProperty(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), async (value) => {
        expect(await roundTrip(value)).toBe(value)
      }),
      { examples: [[2n ** 63n - 1n], [-(2n ** 63n)], [2n ** 53n + 1n], [1_234_567_890_123_456_789n]] },
    )
  })

  test('for every safe integer given as a number', async () => {
    await fc.assert(
      fc.asyncProperty(fc.maxSafeInteger(), async (value) => {
        expect(await roundTrip(value)).toBe(BigInt(value))
      }),
    )
  })

  test('for every text, boolean and null', async () => {
    const values = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.boolean(), fc.constant(null))
    // a text that looks like a parameter on the wire would only fool the echo
    await fc.assert(
      fc.asyncProperty(values, async (value) => {
        expect(await roundTrip(value)).toBe(value)
      }),
    )
  })
})
