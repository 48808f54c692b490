/** What a new cluster is, unless the configuration says otherwise. */
export const clusterDefaults = {
  minCapacity: 0.5,
  /** 8 GiB of memory. */
  maxCapacity: 4,
  // the major version that the tests run on; another one here upgrades the clusters of all who rely on the default
  engineVersion: '17.9',
  deletionProtection: 'on',
  backupRetentionDays: 7,
} as const

/** What a new queue is: the values of SQS itself, and a dead-letter queue. */
export const queueDefaults = { maxReceiveCount: 5, visibilityTimeoutSeconds: 30, retentionDays: 4 } as const
