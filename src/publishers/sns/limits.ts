/** Entries of a PublishBatch (API reference of PublishBatch). */
export const MAX_ENTRIES = 10
