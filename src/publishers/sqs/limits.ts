/** Entries of a SendMessageBatch (SQS quotas, "Batched message request"). */
export const MAX_ENTRIES = 10
