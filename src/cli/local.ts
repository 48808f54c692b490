import { Command, Option } from 'commander'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { integerBetween } from './option.js'
import { loadLocal } from './load-local.js'
import { withProgress } from './progress.js'
import { readyText } from './local-text.js'
import { writeJson, type Terminal } from './terminal.js'

interface LocalOptions {
  readonly port: number
  readonly relays: number
  readonly config?: string
  readonly data?: string
  readonly resourceArn?: string
  readonly secretsEndpoint?: string
  readonly json?: true
}

/** `outbox local`. */
export function localCommand({ terminal }: CommandContext): Command {
  return new Command('local')
    .description('Run a whole local stack: PostgreSQL, RDS Data API, SQS, SNS, EventBridge and relays, until Ctrl-C.')
    .addOption(new Option('--port <number>', '0 picks a free one').argParser(integerBetween(0, 65_535)).default(4566))
    .addOption(new Option('--relays <number>', 'relay processes; 0 starts none').argParser(integerBetween(0, 64)).default(1))
    .addOption(new Option('--engine <name>', 'database engine').choices(['postgres']).default('postgres'))
    .option('--config <file>', 'destinations, routes and settings of the relay, as JSON')
    .option('--data <directory>', 'keep the database here across restarts (default: a temporary directory, removed at exit)')
    .option('--resource-arn <arn>', 'the cluster that the Data API answers for (default: one of its own)')
    .option('--secrets-endpoint <url>', 'another Secrets Manager, for secrets that are not of this stack')
    .option(...jsonFlag)
    .addHelpText(
      'after',
      examples([
        ['outbox local', 'one relay, on port 4566'],
        ['outbox local --port 0 --relays 2 --json', 'for a test: a free port, and one JSON line when ready'],
        ['outbox local --data ./outbox-data', 'the events are still there tomorrow'],
        ['outbox local --relays 0 --config relay.json', 'own destinations; nothing is delivered until you invoke the relay'],
      ]),
    )
    .action(async (options: LocalOptions) => runLocal(options, terminal))
}

async function runLocal(options: LocalOptions, terminal: Terminal): Promise<void> {
  const stop = terminal.stopSignal()
  const stack = await loadLocal(async () => {
    const { startLocalStack } = await import('../local/stack.js')
    return await withProgress(terminal, 'starting PostgreSQL and the services', () =>
      startLocalStack({
        port: options.port,
        relays: options.relays,
        log: (line) => terminal.err(`${line}\n`),
        ...(options.config === undefined ? {} : { configFile: options.config }),
        ...(options.data === undefined ? {} : { dataDirectory: options.data }),
        resourceArn: options.resourceArn,
        secretsEndpoint: options.secretsEndpoint,
      }),
    )
  }).catch((error: unknown) => {
    // Ctrl-C reaches what is being started, too: then that is why it failed
    if (stop.aborted) return undefined
    throw error
  })
  if (stack === undefined) return
  try {
    const { description } = stack
    if (options.json === true) writeJson(terminal, description)
    else terminal.out(readyText(description))
    await aborted(stop)
  } finally {
    await stack.stop()
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
