/** What the Data API allows. Tests shrink them; users have the real ones. */
export interface DataApiLimits {
  /** A statement that runs longer is cancelled. Default 45,000. */
  readonly statementTimeoutMs: number
  /** A transaction without a call for so long is rolled back. Default 180,000. */
  readonly transactionIdleMs: number
  /** Data of one row. Default 65,536. */
  readonly maxRowBytes: number
  /** Data of all rows of an answer. Default 1 MiB. */
  readonly maxResponseBytes: number
  /** The whole request: headers, names and JSON notation included. Default 4 MiB. */
  readonly maxRequestBytes: number
  /** Length of `sql`; parameters do not count. Default 65,536. */
  readonly maxSqlCharacters: number
}

export const DATA_API_LIMITS: DataApiLimits = {
  statementTimeoutMs: 45_000,
  transactionIdleMs: 180_000,
  maxRowBytes: 65_536,
  maxResponseBytes: 1_048_576,
  maxRequestBytes: 4_194_304,
  maxSqlCharacters: 65_536,
}
