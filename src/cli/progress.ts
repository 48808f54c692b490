import type { Terminal } from './terminal.js'
import { ageInWords } from './text.js'

/** A person begins to wonder after two seconds. */
const silentMs = 2000
const tickMs = 1000

/**
 * Runs `work`; if it takes longer than two seconds and a person watches, a line on stderr says what it is doing and for
 * how long, and vanishes at the end.
 *
 * @param text what is being done, e.g. `reading the backlog`
 * @returns what `work` returns; its errors pass
 * @example
 * const backlog = await withProgress(terminal, 'reading the backlog', () => store.backlog())
 */
export async function withProgress<Result>(terminal: Terminal, text: string, work: () => Promise<Result>): Promise<Result> {
  if (!terminal.watched) return work()
  const started = Date.now()
  let width = 0
  const show = (): void => {
    const line = `${text} ... ${ageInWords((Date.now() - started) / 1000)}`
    terminal.err(`\r${line.padEnd(width)}`)
    width = Math.max(width, line.length)
  }
  let ticking: NodeJS.Timeout | undefined
  const waiting = setTimeout(() => {
    show()
    ticking = setInterval(show, tickMs)
  }, silentMs)
  try {
    return await work()
  } finally {
    clearTimeout(waiting)
    clearInterval(ticking)
    if (width > 0) terminal.err(`\r${' '.repeat(width)}\r`)
  }
}
