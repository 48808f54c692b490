/** U+FFFE and U+FFFF, which SQS and SNS refuse, and surrogates without their other half, which UTF-8 cannot carry. */
const FORBIDDEN = /[\uFFFE\uFFFF\p{Surrogate}]/gu

/**
 * The same JSON with every character that a destination forbids written as its escape (`\ufffe`). Such a character can only
 * stand inside a JSON string, so the value stays equal; nothing else is touched.
 *
 * @param json - valid JSON text
 */
export function escapeForbidden(json: string): string {
  return json.replace(FORBIDDEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Bytes of a text in UTF-8; a surrogate without its other half counts 3, as the replacement it is sent as. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) {
      bytes += 1
    } else if (unit >= 0xd800 && unit <= 0xdbff && isLowSurrogate(text.charCodeAt(index + 1))) {
      // two units, four bytes
      bytes += 2
      index += 1
    } else {
      bytes += 2
    }
  }
  return bytes
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}
