import { describe, expect, it } from 'vitest'
import { exitCode } from '../../src/cli/exit-code.js'
import { runCli } from '../../src/cli/main.js'
import { fakeTerminal } from '../support/fake-terminal.js'

const environment = {
  OUTBOX_CLUSTER_ARN: 'arn:aws:rds:us-east-1:000000000000:cluster:orders',
  OUTBOX_SECRET_ARN: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:orders',
  OUTBOX_DATABASE: 'orders',
}

async function run(args: readonly string[], variables: Readonly<Record<string, string>> = environment) {
  const terminal = fakeTerminal({ environment: variables })
  return { code: await runCli(args, terminal), out: terminal.outText(), err: terminal.errText() }
}

describe("a person's mistake", () => {
  it.each<[string[], RegExp]>([
    [['status', '--bogus'], /^outbox: unknown option '--bogus'\n$/],
    [['status', '--jsn'], /^outbox: unknown option '--jsn' \(Did you mean --json\?\)\n$/],
    [['statsu'], /^outbox: unknown command 'statsu' \(Did you mean status\?\)\n$/],
    [['status', 'extra'], /^outbox: too many arguments/],
    [['show'], /^outbox: missing required argument 'id'\n$/],
    [['show', 'seven'], /^outbox: .*'seven' is invalid.*It must be a UUID/],
    [['list', '--status', 'lost'], /^outbox: .*'lost' is invalid.*Allowed choices are pending, published, failed/],
    [['list', '--limit', '0'], /^outbox: .*It must be an integer from 1 to 500\n$/],
    [['list', '--limit', 'many'], /^outbox: .*'many' is invalid/],
    [['local', '--port', '70000'], /^outbox: .*from 0 to 65535\n$/],
    [['local', '--engine', 'mysql'], /^outbox: .*'mysql' is invalid\. Allowed choices are postgres\n$/],
    [['list', '--blocked', '--status', 'failed'], /^outbox: option '--blocked' cannot be used with option '--status/],
    [
      ['redrive'],
      /^outbox: redrive has no filter\. It must be at least one of --id, .*--error-code, .*or --all for every failed event\n$/,
    ],
    [['replay', '--reason', 'r'], /^outbox: replay has no filter\. (?!.*--error-code).*or --all for every published event\n$/],
    [['redrive', '--all', '--key', 'k'], /^outbox: option '--all' cannot be used with option '--key <key>'\n$/],
    [['redrive', '--id', 'seven'], /^outbox: .*'seven' is invalid.*It must be a UUID/],
    [['redrive', '--all'], /^outbox: --reason is not set\. It must be: why, in 1 to 500 characters; the audit keeps it\n$/],
    [['redrive', '--all', '--reason', ' '], /^outbox: .*It must be 1 to 500 characters that are not all blank\n$/],
    [['redrive', '--all', '--limit', '0'], /^outbox: .*'0' is invalid\. It must be an integer from 1 to 10000000\n$/],
    [['redrive', '--all', '--rate', '0.5'], /^outbox: .*'0\.5' is invalid\. It must be an integer from 1 to 100000\n$/],
    [['redrive', '--from', '2026-11-29T10:00:00'], /^outbox: .*It must be a moment with its zone, e\.g\. 2026-11-29T10:00:00Z/],
    [['redrive', '--from', '2026-02-31T10:00:00Z'], /^outbox: .*'2026-02-31T10:00:00Z' is invalid/],
    [['redrive', '--until', '1796000000'], /^outbox: .*'1796000000' is invalid/],
    [
      ['redrive', '--from', '2026-11-29T10:00:00Z', '--until', '2026-11-29T10:00:00+01:00'],
      /^outbox: --until is wrong: must be later than --from\. Seen: 2026-11-29T09:00:00\.000Z\n$/,
    ],
    [
      ['discard', '--all', '--reason', 'r'],
      /^outbox: --yes is not set\. It must be, because a discarded event is never delivered\n$/,
    ],
    [['redrive', '--all', '--reason', 'r', '--yes'], /^outbox: unknown option '--yes'/],
    [['redrive', '--all', '--reason', 'r', '--actor', 'me'], /^outbox: unknown option '--actor'/],
    [['doctor', '--repair'], /^outbox: --reason is not set\. It must be: why/],
    [['replay', '--error-code', 'X'], /^outbox: unknown option '--error-code'/],
    [['demo', '--orders'], /^outbox: option '--orders <number>' argument missing\n$/],
    [['migrate', '--print', '--installation', 'a'], /^outbox: option '--print' cannot be used with option '--installation/],
  ])('%j is one line on stderr, nothing on stdout, and exit code 2', async (args, line) => {
    const { code, out, err } = await run(args)
    expect(err).toMatch(line)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect(out).toBe('')
    expect(code).toBe(exitCode.usage)
  })

  it('names the variable, and the flag that would do, when a setting is missing', async () => {
    const { code, err } = await run(['status'], {})
    expect(err).toBe(
      'outbox: OUTBOX_CLUSTER_ARN (or --cluster-arn) is not set. It must be: the ARN of the Aurora cluster that holds the outbox; its Data API must be on\n',
    )
    expect(code).toBe(exitCode.usage)
  })

  it('names the flag when the flag is wrong, and the variable when the variable is', async () => {
    expect((await run(['status', '--cluster-arn', 'orders'])).err).toMatch(
      /^outbox: --cluster-arn is wrong: must be the ARN .* Seen: orders\n$/,
    )
    expect((await run(['status'], { ...environment, OUTBOX_SCHEMA: 'A b' })).err).toMatch(
      /^outbox: OUTBOX_SCHEMA \(or --schema\) is wrong/,
    )
    expect((await run(['migrate', '--installation', 'a b'])).err).toMatch(/^outbox: --installation is wrong/)
  })
})

const commands = ['local', 'demo', 'migrate', 'status', 'list', 'show', 'redrive', 'discard', 'release', 'replay', 'doctor']

describe('--help', () => {
  it.each(commands)('of %s goes to stdout with examples, exit code 0', async (name) => {
    const { code, out, err } = await run([name, '--help'])
    expect(out).toMatch(new RegExp(`^Usage: outbox ${name} `))
    expect(out).toContain('--json')
    expect(out).toMatch(new RegExp(`\\nExamples:\\n {2}outbox ${name}`))
    expect(err).toBe('')
    expect(code).toBe(exitCode.ok)
  })

  it('of the whole names the commands and the exit codes, and is what no argument at all answers', async () => {
    const { code, out } = await run(['--help'])
    for (const name of commands) expect(out).toMatch(new RegExp(`\\n {2}${name} `))
    expect(out).toContain('Exit codes:')
    for (const value of Object.values(exitCode)) expect(out).toMatch(new RegExp(`\\n {2}${value} +\\S`))
    expect(code).toBe(exitCode.ok)
    expect((await run([])).out).toBe(out)
  })

  it('does not show what is for tests alone', async () => {
    expect((await run(['demo', '--help'])).out).not.toContain('swallow')
  })

  it('has --version beside it', async () => {
    expect((await run(['--version'])).out).toMatch(/^\d+\.\d+\.\d+/)
  })
})

describe('migrate --print', () => {
  it('prints the script without any database', async () => {
    const { code, out } = await run(['migrate', '--print', '--schema', 'billing'], {})
    expect(out).toMatch(/^BEGIN;\n/)
    expect(out).toContain('CREATE TABLE outbox (')
    expect(out).toContain('SET LOCAL search_path = "billing", pg_temp')
    expect(code).toBe(exitCode.ok)
  })

  it('prints the inbox alone with --inbox, and one object with --json', async () => {
    const { out } = await run(['migrate', '--print', '--inbox', '--json'], {})
    const printed = JSON.parse(out) as { schema: string; sql: string }
    expect(printed.schema).toBe('public')
    expect(printed.sql).toContain('CREATE TABLE IF NOT EXISTS outbox_inbox')
    expect(printed.sql).not.toContain('outbox_delivery')
  })
})
