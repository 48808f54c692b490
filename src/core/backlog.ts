/** What is not delivered yet, measured in the database by its own clock. */
export interface Backlog {
  /** Age of the oldest event that is due and neither delivered nor failed, held and backing-off ones included; 0 if there is none. */
  readonly ageSeconds: number
  /** Events that are due and neither delivered nor failed. */
  readonly depth: number
  readonly scheduled: number
  readonly backingOff: number
  readonly held: number
  readonly failed: number
  readonly blockedKeys: number
  /** Age of the oldest failed event, since it failed; 0 if there is none. */
  readonly oldestFailedSeconds: number
  /** Of 16. */
  readonly leasedShards: number
  /** Destinations whose circuit is open. */
  readonly openCircuits: number
  /** Those of them that will not heal by waiting. */
  readonly misconfiguredDestinations: number
}
