/** Entries of a PutEvents (EventBridge quotas). */
export const MAX_ENTRIES = 10

/**
 * Bytes of all entries of a request. EventBridge says "total entry size must be less than 1MB" (since January 2026; 256 KB
 * before) without saying whether of an entry or of a request, nor of which megabyte: the reading that always fits.
 */
export const MAX_BYTES = 1_000_000

/** What EventBridge adds to an entry's size for its Time (user guide, "Calculating PutEvents event entry size"). */
export const TIME_BYTES = 14

/** Characters of a DetailType (API reference of PutEventsRequestEntry). */
export const MAX_DETAIL_TYPE_CHARACTERS = 128

/** Characters of a TraceHeader (API reference of PutEventsRequestEntry). */
export const MAX_TRACE_HEADER_CHARACTERS = 500
