/** Entries of a PutEvents (EventBridge quotas). */
export const MAX_ENTRIES = 10

/** Characters of a TraceHeader (API reference of PutEventsRequestEntry). */
export const MAX_TRACE_HEADER_CHARACTERS = 500
