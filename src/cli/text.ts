/** One column of a table for people. */
export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string
  /** Default `left`. */
  readonly align?: 'left' | 'right'
}

/**
 * Lines of an aligned table, its title line first. Control characters become spaces, so that no value can break the
 * table or the terminal.
 *
 * @example
 * tableLines([{ title: 'NAME', value: (row) => row.name }], [{ name: 'orders' }]) // ['NAME', 'orders']
 */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ value }) => printable(value(row))))]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)))
  return cells.map((line) =>
    line
      .map((cell, index) => {
        const width = widths[index] ?? 0
        return columns[index]?.align === 'right' ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd(),
  )
}

/** `name   value` lines, values aligned. */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(0, ...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`.trimEnd())
}

/** Control characters become spaces: a value from a row must not move the cursor or change colours. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
}

/** At most `length` characters, the last one an ellipsis if something was cut. */
export function shortened(text: string, length: number): string {
  const characters = Array.from(text)
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}

const units = [
  { seconds: 86_400, name: 'day' },
  { seconds: 3600, name: 'hour' },
  { seconds: 60, name: 'minute' },
  { seconds: 1, name: 'second' },
] as const

/**
 * An age in words, in the largest unit of which there are at least two.
 *
 * @example
 * ageInWords(0.4) // 'less than a second'
 * ageInWords(90) // '90 seconds'
 * ageInWords(7200) // '2 hours'
 */
export function ageInWords(seconds: number): string {
  if (seconds < 1) return 'less than a second'
  const unit = units.find((one) => seconds >= 2 * one.seconds) ?? units[3]
  const count = Math.floor(seconds / unit.seconds)
  return `${count} ${unit.name}${count === 1 ? '' : 's'}`
}

/** A size for people, in powers of 1,000. `bytesInWords(24576)` is `25 kB`. */
export function bytesInWords(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const
  const exponent = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** exponent
  return `${exponent === 0 ? bytes : value.toFixed(value < 10 ? 1 : 0)} ${units[exponent] ?? 'bytes'}`
}

/** A count with its noun. `countOf(1, 'event')` is `1 event`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** A moment in UTC, for people. */
export function momentText(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('T', ' ').replace('.000Z', 'Z')
}
