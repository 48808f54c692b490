/** Why a message that is too large is refused, and what to do. */
export function tooLarge(
  bytes: number,
  maxBytes: number,
  what: string,
): { readonly ok: false; readonly code: string; readonly reason: string } {
  return {
    ok: false,
    code: 'TooLarge',
    reason: `the message has ${bytes} bytes, ${what} takes ${maxBytes}: store the data elsewhere and put a reference to it into the payload`,
  }
}
