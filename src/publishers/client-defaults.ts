/** Settings that every publisher's SDK client shares. */
export interface ClientSettings {
  /** A request without an answer for so long is given up; whether it arrived is unknown. Setting: `requestTimeoutMs`. */
  readonly requestTimeoutMs: number
}

/** A connection within a region stands in milliseconds; one that takes a second will not stand. */
const CONNECTION_TIMEOUT_MS = 1000

/**
 * One attempt a call: the relay decides about retries, because it alone knows what else was in the request. The timeouts
 * throw: without `throwOnRequestTimeout` the SDK merely warns when `requestTimeout` has passed, and that one ends with the
 * response's headers, so `socketTimeout` covers a body that stalls. The relay bounds the requests in flight; a pool of its
 * own (default 50 sockets) would let a slow destination keep the others waiting.
 *
 * The endpoint is the region's, or that of the standard variables `AWS_ENDPOINT_URL` and `AWS_ENDPOINT_URL_<SERVICE>`.
 */
export function clientDefaults({ requestTimeoutMs }: ClientSettings) {
  const unbounded = { maxSockets: Infinity }
  return {
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
      httpAgent: unbounded,
      httpsAgent: unbounded,
    },
  }
}
