/** What the process answers to a script; `docs/cli.md` and `--help` say the same. */
export const exitCode = {
  ok: 0,
  /** The database or a service refused or did not answer; the demo's ledger does not balance; `doctor` found a problem. */
  failed: 1,
  /** A flag, an argument, a setting or a file is missing or wrong. */
  usage: 2,
  /** `show`: there is no event with this id. */
  absent: 3,
  /** There is no outbox in that schema, or it is altered, or of another version. */
  schema: 4,
  /** Ctrl-C, SIGTERM: 128 + SIGINT, as a shell counts. `outbox local` ends with 0. */
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

/** The lines of `--help` and of `docs/cli.md`. */
export const exitCodeLines: readonly string[] = [
  '0    done',
  '1    failed: the database or a service refused or did not answer; the ledger of the demo does not balance; doctor found a problem',
  '2    usage or configuration: a flag, an argument, a setting or a file is missing or wrong',
  '3    show: there is no event with this id',
  '4    schema: there is no outbox in that schema, or it is altered, or of another version',
  '130  interrupted (Ctrl-C) before the end; local ends with 0',
]
