import { toEnvironment } from '../../config/parse.js'
import { canarySettings, cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../../config/settings.js'
import type { Destinations } from '../../core/destination.js'
import type { LocalConfig } from '../config/local-config.js'
import type { HandlerName } from '../control/control.js'
import { lambdaEnvironment } from '../lambda/environment.js'
import { LocalFunction } from '../lambda/local-function.js'
import { builtFile, handlerBundle } from '../lambda/package-root.js'
import { DATABASE, INSTALLATION, loginSecretArn, USER_SECRETS, type LoginName } from './database.js'

/** Seconds after which an invocation is killed, as the stack in an account sets them. */
const TIMEOUT_SECONDS: Readonly<Record<HandlerName, number>> = { relay: 90, cleanup: 300, monitor: 55, migrate: 330, canary: 55 }

export interface FunctionsOptions {
  readonly endpointUrl: string
  readonly resourceArn: string
  readonly config: LocalConfig
  /** The destinations, in the local stack. */
  readonly destinations: Destinations
  readonly relays: number
  readonly log: (line: string) => void
}

export interface LocalFunctions {
  /** Scheduled, `relay-1` and so on. */
  readonly relays: readonly LocalFunction[]
  /** By handler; `relay` is one that drains and returns, for single invocations. */
  readonly byHandler: Readonly<Record<HandlerName, LocalFunction>>
  stop(): Promise<void>
}

/** @throws OutboxError `NotBuilt`. */
export function createFunctions({
  endpointUrl,
  resourceArn,
  config,
  destinations,
  relays,
  log,
}: FunctionsOptions): LocalFunctions {
  const hostPath = builtFile('local', 'lambda-host.mjs')
  const place = (login: LoginName) => ({
    resourceArn,
    secretArn: loginSecretArn(login),
    database: DATABASE,
    installation: INSTALLATION,
  })
  const create = (name: string, handler: HandlerName, settings: Readonly<Record<string, string>>) =>
    new LocalFunction(
      {
        name,
        hostPath,
        modulePath: handlerBundle(handler),
        timeoutSeconds: TIMEOUT_SECONDS[handler],
        environment: { ...lambdaEnvironment(name, endpointUrl), ...settings },
      },
      log,
    )
  const buses = Object.keys(destinations).filter((name) => destinations[name]?.type === 'eventbridge')
  const relay = { ...config.relay, ...place('relay'), destinations }
  const byHandler = {
    relay: create('relay', 'relay', toEnvironment(relaySettings, { ...relay, profile: 'drain' })),
    cleanup: create('cleanup', 'cleanup', toEnvironment(cleanupSettings, { ...config.cleanup, ...place('cleanup') })),
    monitor: create('monitor', 'monitor', toEnvironment(monitorSettings, { ...config.monitor, ...place('monitor') })),
    canary: create('canary', 'canary', toEnvironment(canarySettings, { ...place('canary'), destinations: buses })),
    migrate: create(
      'migrate',
      'migrate',
      toEnvironment(migrateSettings, { ...config.migrate, ...place('owner'), userSecrets: USER_SECRETS }),
    ),
  }
  const scheduled = Array.from({ length: relays }, (_, index) =>
    create(`relay-${index + 1}`, 'relay', toEnvironment(relaySettings, relay)),
  )
  return {
    relays: scheduled,
    byHandler,
    async stop() {
      await Promise.all([...scheduled, ...Object.values(byHandler)].map((one) => one.stop()))
    },
  }
}
