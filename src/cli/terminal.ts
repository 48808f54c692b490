/** Where a command reads from and writes to: the process, or a test. */
export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Results, and nothing else: a script reads them. */
  readonly out: (text: string) => void
  /** Errors, progress and logs. */
  readonly err: (text: string) => void
  /** Whether a person watches stderr; without one there is no progress. */
  readonly watched: boolean
  /** From this call on Ctrl-C, SIGTERM and SIGHUP abort the signal, in place of ending the process. */
  readonly stopSignal: () => AbortSignal
}

/** Writes one JSON object as one line. */
export function writeJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${JSON.stringify(value)}\n`)
}
