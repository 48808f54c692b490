/** Entries of a PublishBatch (API reference of PublishBatch). */
export const MAX_ENTRIES = 10

/**
 * Bytes of a message, and of all messages of a batch together, that a topic takes unless its attribute MaximumMessageSize
 * says otherwise: 256 KiB (API reference of PublishBatch).
 */
export const DEFAULT_BYTES = 262_144

/** The most that MaximumMessageSize can say: 1 MiB since 2026. */
export const MAX_BYTES = 1_048_576
