/** Makes UUIDv7 ids that grow within this process, even when its clock stands still or goes back (RFC 9562, 6.2, method 1). */
export function createEventIds(epochMs: () => number = Date.now): () => string {
  let lastMs = 0
  let counter = 0
  return () => {
    const nowMs = epochMs()
    counter++
    if (nowMs > lastMs || counter > 0xfff) {
      // the lower half only, so that a millisecond has room for at least 2,048 ids
      const [start = 0] = crypto.getRandomValues(new Uint16Array(1))
      counter = start & 0x7ff
      lastMs = Math.max(nowMs, lastMs + 1)
    }
    const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2))
    const time = hex(lastMs, 12)
    // version 7 before the counter, variant 10 before the random part
    const variant = hex(0x8000 | (high & 0x3fff), 4)
    const tail = hex(high >>> 16, 4) + hex(low, 8)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(counter, 3)}-${variant}-${tail}`
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
