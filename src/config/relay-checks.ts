import { ConfigurationError } from '../core/errors.js'
import type { Setting, SettingValues } from './setting.js'
import { relaySettings } from './settings.js'

/**
 * What no single setting can know: that routes lead to configured destinations, and that a request fits into a lease.
 *
 * @throws ConfigurationError naming the variable, its value and what is allowed.
 */
export function checkRelaySettings(values: SettingValues<typeof relaySettings>): void {
  const { destinations, routes, defaultDestination, requestTimeoutMs, leaseSeconds, retryBaseMs, retryCapMs } = values
  const known = `configured destinations: ${Object.keys(destinations).join(', ')}`
  for (const [index, { eventType, to }] of routes.entries()) {
    if (Object.hasOwn(destinations, to)) continue
    refuse(relaySettings.routes, `[${index}] sends "${eventType}" to "${to}", which is not configured (${known})`)
  }
  if (defaultDestination !== null && !Object.hasOwn(destinations, defaultDestination)) {
    refuse(relaySettings.defaultDestination, `is "${defaultDestination}", which is not configured (${known})`)
  }
  // a lease is renewed at a third, so two thirds are left when a request goes out at the latest moment
  const allowedMs = Math.floor((leaseSeconds * 1000 * 2) / 3) - 2000
  if (requestTimeoutMs >= allowedMs) {
    refuse(
      relaySettings.requestTimeoutMs,
      `is ${requestTimeoutMs}: with a lease of ${leaseSeconds} s it must be below ${allowedMs}, so that a request ends before its lease`,
    )
  }
  if (retryBaseMs > retryCapMs)
    refuse(relaySettings.retryBaseMs, `is ${retryBaseMs}, more than ${relaySettings.retryCapMs.env} (${retryCapMs})`)
}

function refuse(setting: Pick<Setting<unknown>, 'env'>, problem: string): never {
  throw new ConfigurationError(setting.env, `${setting.env} ${problem}`)
}
