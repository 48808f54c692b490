/** Entries of a SendMessageBatch (SQS quotas, "Batched message request"). */
export const MAX_ENTRIES = 10

/** Bytes of a message, and of all messages of a batch together: 1 MiB since August 2025 (SQS quotas, "Message size"). */
export const MAX_BYTES = 1_048_576
