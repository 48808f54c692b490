export interface SqlText {
  /** The statement in pieces: a parameter stands between each two of them. */
  readonly pieces: readonly string[]
  /** Names in order of appearance; one that appears twice is there twice. */
  readonly names: readonly string[]
  /** `$1` and the like outside of literals: nothing is ever bound to them. */
  readonly strayPlaceholder: string | undefined
  readonly endsWithSemicolon: boolean
}

/**
 * One token of PostgreSQL's grammar, as far as it matters here: what a colon may hide in (strings with and without
 * backslashes, quoted names, comments, dollar quotes), casts, and names, which swallow a `$` or an `e` inside of them.
 */
const TOKEN =
  /(?<skip>[eE]'(?:[^'\\]|\\[^]|'')*'|'[^']*'|"[^"]*"|::|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<comment>--[^\n]*|\/\*)|(?<space>\s+)|(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|:(?<name>[A-Za-z_]\w*)|(?<stray>\$\d+)|[^]/gy

/** Finds the named parameters of a statement. Everything else is left to PostgreSQL's own parser. */
export function parseSqlText(sql: string): SqlText {
  const pieces: string[] = []
  const names: string[] = []
  let strayPlaceholder: string | undefined
  let endsWithSemicolon = false
  let pieceStart = 0
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(sql); match !== null; match = TOKEN.exec(sql)) {
    const { comment, space, dollar, name, stray } = match.groups ?? {}
    if (comment === '/*') TOKEN.lastIndex = endOfComment(sql, TOKEN.lastIndex)
    if (dollar !== undefined) TOKEN.lastIndex = endAfter(sql, dollar, TOKEN.lastIndex)
    if (stray !== undefined) strayPlaceholder ??= stray
    if (name !== undefined) {
      pieces.push(sql.slice(pieceStart, match.index))
      names.push(name)
      pieceStart = TOKEN.lastIndex
    }
    if (comment === undefined && space === undefined) endsWithSemicolon = match[0] === ';'
  }
  return { pieces: [...pieces, sql.slice(pieceStart)], names, strayPlaceholder, endsWithSemicolon }
}

function endAfter(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from)
  return found === -1 ? sql.length : found + mark.length
}

/** Comments nest in PostgreSQL. */
function endOfComment(sql: string, from: number): number {
  const marks = /\/\*|\*\//g
  marks.lastIndex = from
  for (let depth = 1, mark = marks.exec(sql); mark !== null; mark = marks.exec(sql)) {
    depth += mark[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return sql.length
}
