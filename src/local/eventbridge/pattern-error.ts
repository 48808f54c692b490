/** An event pattern that EventBridge would not take. */
export class PatternError extends Error {}
