/** Of this package; `outbox_meta.min_relay_version` is compared with it. */
export const relayVersion = '0.1.0'
