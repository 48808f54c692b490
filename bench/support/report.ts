import { cpus, loadavg, release, totalmem, type as system } from 'node:os'

export type Row = Readonly<Record<string, string | number>>

/** What a figure must not exceed. */
export interface Limit {
  readonly what: string
  readonly value: number
  readonly allowed: number
}

export interface Report {
  /** Title -> rows, all with the same columns. */
  readonly tables: Readonly<Record<string, readonly Row[]>>
  readonly limits: readonly Limit[]
}

/** Where and when figures come from: they can be compared within one run, and hardly beyond. */
export interface Circumstances {
  readonly date: string
  readonly machine: string
  /** Load average of the minute before: above 0 it was not alone. */
  readonly loadBefore: number
}

export function circumstances(): Circumstances {
  const processors = cpus()
  const gibibytes = Math.round(totalmem() / 1024 ** 3)
  return {
    date: new Date().toISOString(),
    machine: `${processors.length} x ${processors[0]?.model ?? 'unknown'}, ${gibibytes} GiB, ${system()} ${release()}, Node ${process.version}`,
    loadBefore: loadavg()[0] ?? 0,
  }
}

export function asJson(bench: string, options: object, where: Circumstances, { tables, limits }: Report): string {
  const judged = limits.map((limit) => ({ ...limit, kept: isKept(limit) }))
  return JSON.stringify({ bench, ...where, options, tables, limits: judged })
}

export function asText(bench: string, options: object, where: Circumstances, { tables, limits }: Report): string {
  const head = [
    `${bench} ${JSON.stringify(options)}`,
    `${where.date}, ${where.machine}, load before ${where.loadBefore.toFixed(2)}`,
  ]
  const body = Object.entries(tables).flatMap(([title, rows]) => ['', title, ...alignedRows(rows)])
  const verdicts = limits.map(
    (limit) => `${isKept(limit) ? 'kept  ' : 'MISSED'} ${limit.what}: ${limit.value}, allowed ${limit.allowed}`,
  )
  return [...head, ...body, ...(verdicts.length === 0 ? [] : ['', ...verdicts])].join('\n')
}

function isKept({ value, allowed }: Limit): boolean {
  // a figure that is not there is not kept
  return value <= allowed
}

function alignedRows(rows: readonly Row[]): string[] {
  const columns = Object.keys(rows[0] ?? {})
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]!.length)))
  return cells.map((line) => `  ${line.map((cell, index) => cell.padStart(widths[index]!)).join('  ')}`)
}
