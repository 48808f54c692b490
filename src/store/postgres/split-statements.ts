/** Comment, string, quoted name and dollar-quoted body, each whole; else a semicolon, or a stretch of anything else. */
const piece = /--[^\n]*|\/\*[^]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[^]*?\1|;|[^;'"$/-]+|[^]/g

/**
 * The statements of a SQL text, each without its semicolon: the Data API takes one at a time.
 *
 * Semicolons in comments, strings, quoted names and dollar-quoted bodies do not count. What it does not know, because the
 * schema files do without: nested comments and E'...' strings with an escaped quote.
 */
export function splitStatements(sql: string): readonly string[] {
  const statements: string[] = []
  let text = ''
  let hasCode = false
  const end = () => {
    if (hasCode) statements.push(text.trim())
    text = ''
    hasCode = false
  }
  for (const [part] of sql.matchAll(piece)) {
    if (part === ';') {
      end()
      continue
    }
    text += part
    hasCode ||= !/^(--|\/\*|\s*$)/.test(part)
  }
  end()
  return statements
}
