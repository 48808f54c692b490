import type { Terminal } from '../../src/cli/terminal.js'

/** A terminal that keeps what a command writes. */
export interface FakeTerminal extends Terminal {
  readonly outText: () => string
  readonly errText: () => string
}

export function fakeTerminal(
  options: {
    readonly environment?: Readonly<Record<string, string>>
    readonly watched?: true | false
    readonly stop?: AbortSignal
  } = {},
): FakeTerminal {
  let out = ''
  let err = ''
  return {
    environment: options.environment ?? {},
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    watched: options.watched ?? false,
    stopSignal: () => options.stop ?? new AbortController().signal,
    outText: () => out,
    errText: () => err,
  }
}
