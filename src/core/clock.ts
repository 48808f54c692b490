export interface Clock {
  /** Monotonic milliseconds: only differences mean anything. */
  nowMs(): number
  /** This machine's wall clock, milliseconds since 1970. For a measurement only; no decision rests on it. */
  epochMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number
  /** A random UUID (v4), for lease tokens. */
  uuid(): string
}
