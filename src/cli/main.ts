import { Command, CommanderError } from 'commander'
import { actCommand } from './act.js'
import { acts } from './acts.js'
import { examples, type CommandContext } from './command.js'
import { demoCommand } from './demo.js'
import { doctorCommand } from './doctor.js'
import { exitCode, exitCodeLines, type ExitCode } from './exit-code.js'
import { describeFailure } from './failure.js'
import { listCommand } from './list.js'
import { localCommand } from './local.js'
import { migrateCommand } from './migrate.js'
import { showCommand } from './show.js'
import { statusCommand } from './status.js'
import type { Terminal } from './terminal.js'
import { packageVersion } from './version.js'

/** Columns, whatever the terminal has: `docs/cli.md` shows the same text. */
const helpWidth = 100

/** The command line of `outbox`, ready to parse. */
export function createProgram(context: CommandContext): Command {
  const program = new Command('outbox')
    .description('Transactional outbox for Aurora: sees that committed events reach EventBridge and SQS.')
    .version(packageVersion())
    .helpCommand(false)
    .addHelpText(
      'after',
      examples([
        ['outbox demo', 'see it run on this machine, without an AWS account'],
        ['outbox local --relays 1', 'a whole local stack to develop against'],
        ['outbox status', 'what is waiting, since when, and what failed'],
        ['outbox redrive --all --dry-run', 'which failed events would be sent again'],
        ['outbox list --help', 'the options of one command, with examples'],
      ]) + `\nExit codes:\n${exitCodeLines.map((line) => `  ${line}\n`).join('')}`,
    )
  for (const create of [localCommand, demoCommand, migrateCommand, statusCommand, listCommand, showCommand]) {
    program.addCommand(create(context))
  }
  for (const act of acts) program.addCommand(actCommand(act, context))
  program.addCommand(doctorCommand(context))
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({
      writeOut: context.terminal.out,
      writeErr: context.terminal.err,
      getOutHelpWidth: () => helpWidth,
      getErrHelpWidth: () => helpWidth,
      // one line, and ours: see `runCli`
      outputError: () => undefined,
    })
  }
  return program
}

/**
 * Runs one command line and answers the exit code. Never throws; a person's mistake ends in one line on stderr.
 *
 * @param args without node and script, e.g. `['status', '--json']`
 */
export async function runCli(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  let code: ExitCode = exitCode.ok
  const program = createProgram({ terminal, finish: (answer) => (code = answer) })
  if (args.length === 0) {
    program.outputHelp()
    return exitCode.ok
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // --help and --version end this way too
    if (error instanceof CommanderError && error.exitCode === 0) return exitCode.ok
    const failure = describeFailure(error)
    terminal.err(`outbox: ${failure.line}\n`)
    return failure.code
  }
}
