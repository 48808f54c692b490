import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseSettings, toEnvironment } from '../../src/config/parse.js'
import { checkRelaySettings } from '../../src/config/relay-checks.js'
import { relaySettings } from '../../src/config/settings.js'
import { relayVersion } from '../../src/core/version.js'

const environment = {
  OUTBOX_CLUSTER_ARN: 'arn:aws:rds:eu-west-1:111122223333:cluster:orders',
  OUTBOX_SECRET_ARN: 'arn:aws:secretsmanager:eu-west-1:111122223333:secret:relay-AbCdEf',
  OUTBOX_DATABASE: 'orders',
  OUTBOX_INSTALLATION: 'orders',
  OUTBOX_DESTINATIONS: '{"bus":{"type":"eventbridge","eventBusName":"orders"}}',
}
const parse = (changes: Readonly<Record<string, string>> = {}) => parseSettings(relaySettings, { ...environment, ...changes })

describe('settings', () => {
  it('have defaults for everything but where the outbox is, who serves it and where events go', () => {
    expect(parse()).toMatchObject({
      schema: 'public',
      leaseSeconds: 30,
      passSeconds: 75,
      maxAttempts: 10,
      profile: 'continuous',
      routes: [],
    })
    expect(Object.isFrozen(parse())).toBe(true)
  })

  it.each(Object.keys(environment))('say so in one line when %s is not set', (name) => {
    expect(() => parse({ [name]: '' })).toThrow(new RegExp(`^${name} is not set\\. It must be: [^\\n]+$`))
  })

  it.each([
    [
      'OUTBOX_CLUSTER_ARN',
      'orders',
      'must be the ARN of an Aurora cluster (arn:aws:rds:<region>:<account>:cluster:<name>). Seen: orders',
    ],
    ['OUTBOX_SCHEMA', 'public; DROP', 'must be a plain lower-case PostgreSQL schema name. Seen: public; DROP'],
    ['OUTBOX_LEASE_SECONDS', '5', '>=6. Seen: 5'],
    ['OUTBOX_LEASE_SECONDS', 'soon', 'must be an integer. Seen: soon'],
    ['OUTBOX_PROFILE', 'fast', '"continuous"|"drain". Seen: fast'],
    ['OUTBOX_SOURCE', 'aws.orders', 'must not begin with "aws."'],
    ['OUTBOX_DESTINATIONS', '{', 'must be JSON. Seen: {'],
    ['OUTBOX_DESTINATIONS', '{}', 'must name at least one destination. Seen: {}'],
    ['OUTBOX_DESTINATIONS', '{"a b":{"type":"sqs","queueUrl":"https://x/1/q"}}', 'a b'],
    ['OUTBOX_DESTINATIONS', '{"q":{"type":"sqs","queueUrl":"https://x/1/q","fifo":true}}', 'q: Unrecognized key: "fifo"'],
    ['OUTBOX_ROUTES', '[{"eventType":"","to":"bus"}]', '[0].eventType'],
  ])('refuse %s = %s', (name, value, message) => {
    const attempt = (): unknown => parse({ [name]: value })
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(new RegExp(`^${name} is wrong: `))
  })

  it.each([
    [
      { OUTBOX_ROUTES: '[{"eventType":"Order*","to":"queue"}]' },
      'OUTBOX_ROUTES [0] sends "Order*" to "queue", which is not configured (configured destinations: bus)',
    ],
    [
      { OUTBOX_DEFAULT_DESTINATION: 'queue' },
      'OUTBOX_DEFAULT_DESTINATION is "queue", which is not configured (configured destinations: bus)',
    ],
    [
      { OUTBOX_LEASE_SECONDS: '15', OUTBOX_REQUEST_TIMEOUT_MS: '9000' },
      'OUTBOX_REQUEST_TIMEOUT_MS is 9000: with a lease of 15 s it must be below 8000, so that a request ends before its lease',
    ],
    [
      { OUTBOX_RETRY_BASE_MS: '900', OUTBOX_RETRY_CAP_MS: '800' },
      'OUTBOX_RETRY_BASE_MS is 900, more than OUTBOX_RETRY_CAP_MS (800)',
    ],
  ] as const)('refuse what does not fit together: %j', (changes, message) => {
    expect(() => checkRelaySettings(parse(changes))).toThrow(message)
  })

  it('come back from the environment as they went in, defaults left out', () => {
    const values = parse({ OUTBOX_ROUTES: '[{"eventType":"*","to":"bus","onFailure":"skip"}]', OUTBOX_LEASE_SECONDS: '45' })
    const written = toEnvironment(relaySettings, values)
    expect(Object.keys(written).sort()).toEqual([...Object.keys(environment), 'OUTBOX_LEASE_SECONDS', 'OUTBOX_ROUTES'].sort())
    expect(parseSettings(relaySettings, written)).toEqual(values)
  })
})

describe('the version that handlers check the schema with', () => {
  it('is the version of the package', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
    expect(version.split('-')[0]).toBe(relayVersion)
  })
})
