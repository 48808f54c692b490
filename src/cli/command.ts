import type { ExitCode } from './exit-code.js'
import type { Terminal } from './terminal.js'

/** What a command's action gets besides its options. */
export interface CommandContext {
  readonly terminal: Terminal
  /** Sets the exit code; an action that does not call it ends with 0. */
  readonly finish: (code: ExitCode) => void
}

/** The examples below a command's options. */
export function examples(lines: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...lines.map(([command]) => command.length))
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command.padEnd(width)}  ${meaning}\n`).join('')}`
}

export const jsonFlag = ['--json', 'print one JSON object, for scripts'] as const
