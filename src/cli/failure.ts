import { CommanderError } from 'commander'
import { ConfigurationError, SchemaError, SqlError } from '../core/errors.js'
import { exitCode, type ExitCode } from './exit-code.js'
import { printable } from './text.js'

/** What a person reads about an error: one line, and what a script reads: the exit code. */
export interface Failure {
  readonly line: string
  readonly code: ExitCode
}

/** undefined_table, undefined_function, invalid_schema_name: what a statement meets where nothing was migrated. */
const noOutboxStates = new Set(['42P01', '42883', '3F000'])

/** An error as one line without a stack, and the exit code that goes with it. */
export function describeFailure(error: unknown): Failure {
  if (error instanceof CommanderError) return { line: oneLine(error.message), code: exitCode.usage }
  if (error instanceof ConfigurationError) return { line: oneLine(error.message), code: exitCode.usage }
  if (error instanceof SchemaError) return { line: oneLine(error.message), code: exitCode.schema }
  if (error instanceof SqlError && error.sqlState !== undefined && noOutboxStates.has(error.sqlState)) {
    return { line: `there is no outbox here, run "outbox migrate": ${oneLine(error.message)}`, code: exitCode.schema }
  }
  if (!(error instanceof Error)) return { line: oneLine(String(error)), code: exitCode.failed }
  const hint = hints[error.name]
  return { line: oneLine(hint === undefined ? error.message : `${error.message} ${hint}`), code: exitCode.failed }
}

/** Errors of the AWS SDK that a person can do something about at once. */
const hints: Readonly<Record<string, string>> = {
  CredentialsProviderError: '(set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)',
}

function oneLine(text: string): string {
  return printable(text.replace(/^error: /, ''))
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[.]$/, '')
}
