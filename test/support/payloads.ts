export type Alphabet = 'ascii' | 'four-byte'

/** What a JSON library on the way would change: digits, escapes, order of keys, a key that is there twice, spaces. */
const AWKWARD = String.raw`{"n":9223372036854775807,"m":-9223372036854775808,"d":1.10,"b":1,"a":2,"a":3 , "nul":"\u0000","escaped":"\ufffe\uFFFF"`
/** U+FFFE and U+FFFF as they are, which SQS and SNS refuse. */
const RAW = ',"raw":"\uFFFE\uFFFF"'

/** JSON of exactly so many bytes: from 200 on with all that is awkward in it, else as many zeros' worth of a number. */
export function payloadOf(bytes: number, alphabet: Alphabet): string {
  if (bytes < 200) return '7'.repeat(bytes)
  const head = `${AWKWARD}${alphabet === 'ascii' ? '' : RAW},"text":"`
  const room = bytes - Buffer.byteLength(head) - '"}'.length
  const text = alphabet === 'ascii' ? 'x'.repeat(room) : '\u{1D11E}'.repeat(Math.floor(room / 4)) + 'x'.repeat(room % 4)
  return `${head}${text}"}`
}

/** The payload as a consumer gets it: byte for byte, but for the two characters that travel as their escapes. */
export function asSent(payload: string): string {
  return payload.replaceAll('\uFFFE', String.raw`\ufffe`).replaceAll('\uFFFF', String.raw`\uffff`)
}

/** Headers of exactly so many bytes as JSON (at least 100), a third of them characters of four bytes. */
export function headersOf(bytes: number): string {
  const head = `{"tenant":"t1","x-wide":"${'\u{1D11E}'.repeat(Math.floor(bytes / 12))}","x-note":"`
  return `${head}${'h'.repeat(bytes - Buffer.byteLength(head) - '"}'.length)}"}`
}
