import { Command, Option } from 'commander'
import { examples, jsonFlag, type CommandContext } from './command.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { loadLocal } from './load-local.js'
import { integerBetween } from './option.js'
import { writeJson, type Terminal } from './terminal.js'

interface DemoCommandOptions {
  readonly orders: number
  readonly outageSeconds: number
  readonly swallow?: true
  readonly verbose?: true
  readonly json?: true
}

/** `outbox demo`. */
export function demoCommand({ terminal, finish }: CommandContext): Command {
  return (
    new Command('demo')
      .description('Watch it run: orders, an outage of every destination, recovery, and a ledger that must balance.')
      .addOption(new Option('--orders <number>', 'orders to commit').argParser(integerBetween(1, 100_000)).default(2000))
      .addOption(new Option('--outage-seconds <number>', 'length of the outage').argParser(integerBetween(0, 300)).default(10))
      .option('--verbose', 'show the logs of the relays too')
      // a destination that says yes and delivers nothing: makes the ledger fail, for the test of the ledger
      .addOption(new Option('--swallow').hideHelp())
      .option(...jsonFlag)
      .addHelpText(
        'after',
        examples([
          ['outbox demo', 'about 40 seconds'],
          ['outbox demo --orders 200 --outage-seconds 3', 'a short one'],
          ['outbox demo --json', 'the ledger alone on stdout; exit code 1 if it does not balance'],
        ]),
      )
      .action(async (options: DemoCommandOptions) => finish(await runDemo(options, terminal)))
  )
}

async function runDemo(options: DemoCommandOptions, terminal: Terminal): Promise<ExitCode> {
  const stop = terminal.stopSignal()
  // with --json stdout belongs to the ledger
  const say = options.json === true ? terminal.err : terminal.out
  const result = await loadLocal(async () => {
    const { demo } = await import('../local/demo/demo.js')
    return await demo({
      orders: options.orders,
      outageSeconds: options.outageSeconds,
      broken: options.swallow === true ? 'swallow' : 'nothing',
      logs: options.verbose === true ? 'shown' : 'hidden',
      say: (line) => say(`${line}\n`),
      stop,
    })
  })
  if (result === 'interrupted') {
    terminal.err('outbox: interrupted before the ledger was drawn; everything is stopped and removed\n')
    return exitCode.interrupted
  }
  if (options.json === true) writeJson(terminal, result.ledger)
  return result.reasons.length === 0 ? exitCode.ok : exitCode.failed
}
