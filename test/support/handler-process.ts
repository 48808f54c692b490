import { toEnvironment } from '../../src/config/parse.js'
import { cleanupSettings, migrateSettings, monitorSettings, relaySettings } from '../../src/config/settings.js'
import type { Destinations } from '../../src/core/destination.js'
import { lambdaEnvironment } from '../../src/local/lambda/environment.js'
import type { InvocationResult } from '../../src/local/lambda/execution-environment.js'
import { LocalFunction } from '../../src/local/lambda/local-function.js'
import { builtFile } from '../../src/local/lambda/package-root.js'
import { DATABASE, loginSecretArn, RESOURCE_ARN } from '../../src/local/stack/database.js'

const settingsOf = { relay: relaySettings, cleanup: cleanupSettings, monitor: monitorSettings, migrate: migrateSettings } as const

export interface HandlerProcessOptions {
  readonly handler: keyof typeof settingsOf
  readonly endpoint: string
  readonly installation: string
  /** Of the relay. The first is the default. */
  readonly destinations?: Destinations
  /** By the names in docs/configuration.md. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Default: that of `npm run build`. */
  readonly modulePath?: string
}

/** A bundled handler in a process of its own, against a local stack, as an installation of any name. Whoever starts it stops it. */
export function handlerProcess(options: HandlerProcessOptions): LocalFunction {
  const { handler, endpoint, installation, destinations } = options
  const name = `${handler} of ${installation}`
  const settings = toEnvironment(settingsOf[handler], {
    resourceArn: RESOURCE_ARN,
    secretArn: loginSecretArn(handler === 'migrate' ? 'owner' : handler),
    database: DATABASE,
    installation,
    ...(destinations === undefined ? {} : { destinations, defaultDestination: Object.keys(destinations)[0] }),
    ...options.settings,
  })
  return new LocalFunction(
    {
      name,
      hostPath: builtFile('local', 'lambda-host.mjs'),
      modulePath: options.modulePath ?? builtFile('lambdas', handler, 'index.mjs'),
      timeoutSeconds: 90,
      environment: { ...lambdaEnvironment(name, endpoint), ...settings },
    },
    () => undefined,
  )
}

/** A handler that is invoked again as soon as an invocation has ended, until it is stopped or one fails. */
export interface Repeated {
  readonly results: readonly (InvocationResult & { readonly begunAtMs: number })[]
  /** Resolves when the last invocation has ended, of itself or because of `finish`. */
  readonly ended: Promise<void>
  /** Lets the invocation that is under way end. */
  finish(): Promise<void>
}

export function repeat(handler: LocalFunction): Repeated {
  const results: (InvocationResult & { begunAtMs: number })[] = []
  let finishing = false
  const run = async () => {
    while (!finishing) {
      const begunAtMs = performance.now()
      const result = await handler.invoke()
      results.push({ ...result, begunAtMs })
      if (result.error !== null) return
    }
  }
  const ended = run()
  return {
    results,
    ended,
    finish: () => {
      finishing = true
      return ended
    },
  }
}
