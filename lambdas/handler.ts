import type { Context } from 'aws-lambda'
import { parseSettings } from '../src/config/parse.js'
import { databaseSettings } from '../src/config/settings.js'
import type { Settings, SettingValues } from '../src/config/setting.js'
import { deadlineAfter, type Deadline } from '../src/core/deadline.js'
import { ConfigurationError, OutboxError, SchemaError } from '../src/core/errors.js'
import type { LogMessage, OutboxStore, SqlDatabase, Telemetry } from '../src/core/ports.js'
import { relayVersion } from '../src/core/version.js'
import { createDataApiDatabase } from '../src/data-api/database.js'
import type { OnCall } from '../src/data-api/retry.js'
import { systemClock } from '../src/data-api/system-clock.js'
import { readSchemaCheck } from '../src/store/check-schema.js'
import { createOutboxStore } from '../src/store/postgres/outbox-store.js'
import { createPowertoolsTelemetry } from '../src/telemetry/powertools-telemetry.js'

/** Kept back from the invocation's time for settling, flushing and returning. */
const MARGIN_MS = 2_000

/** What an invocation has to work with. */
export interface Invocation<S extends Settings> {
  readonly settings: SettingValues<S>
  readonly database: SqlDatabase
  readonly store: OutboxStore
  readonly telemetry: Telemetry
  readonly requestId: string
  /** Its own, as Lambda names it: the account is in it. */
  readonly functionArn: string
  /** What it was invoked with. */
  readonly event: unknown
  /** The end of the invocation, less a margin. */
  readonly deadline: Deadline
}

export interface HandlerDefinition<S extends Settings, Result> {
  readonly name: 'relay' | 'cleanup' | 'monitor' | 'migrate' | 'canary'
  readonly settings: S
  /** Throws ConfigurationError for settings that do not fit together. */
  readonly check?: (settings: SettingValues<S>) => void
  /** Whether to refuse to run on a schema that is missing, too new, or another installation's. `unread`: the user may not look. */
  readonly schema: 'checked' | 'made' | 'unread'
  run(invocation: Invocation<S>): Promise<Result>
}

/**
 * Makes a Lambda handler: settings from the environment, adapters wired once per process, one core function called.
 *
 * Whatever goes wrong ends the invocation as failed, with one log line that says what was wrong; its stack is cut, because a
 * wrong setting or a database that is down is no fault of the code at the top of it.
 */
export function createHandler<S extends Settings & typeof databaseSettings, Result>(
  definition: HandlerDefinition<S, Result>,
): (event: unknown, context: Context) => Promise<Result> {
  const wire = lazily(() => {
    const settings = parseSettings(definition.settings, process.env)
    definition.check?.(settings)
    const { resourceArn, secretArn, database: name, schema, installation } = parseSettings(databaseSettings, process.env)
    const telemetry = createPowertoolsTelemetry({ installation, handler: definition.name })
    const onCall: OnCall = (how) => {
      telemetry.metric('DataApiCalls', 1)
      if (how === 'failed') telemetry.metric('DataApiErrors', 1)
    }
    const database = createDataApiDatabase({ resourceArn, secretArn, database: name, onCall })
    return { settings, database, store: createOutboxStore(database, { schema }), telemetry, schema, installation }
  })

  return async (event, context) => {
    const deadline = deadlineAfter(systemClock, context.getRemainingTimeInMillis() - MARGIN_MS)
    let telemetry = fallbackTelemetry(definition.name)
    try {
      const { schema, installation, ...wired } = wire()
      telemetry = wired.telemetry
      if (definition.schema === 'checked') {
        const check = await readSchemaCheck(wired.store, { relayVersion, installation, schema }, { deadline })
        if (!check.ok) throw new SchemaError(check.reason)
      }
      const { awsRequestId: requestId, invokedFunctionArn: functionArn } = context
      return await definition.run({ ...wired, requestId, functionArn, event, deadline })
    } catch (error) {
      if (!(error instanceof OutboxError)) throw error
      const reason = error.message
      telemetry.log(
        logMessageFor(error, definition.name),
        error instanceof ConfigurationError ? { setting: error.setting, reason } : { reason },
      )
      error.stack = `${error.name}: ${reason}`
      throw error
    } finally {
      telemetry.flush()
    }
  }
}

function logMessageFor(error: OutboxError, handler: string): LogMessage {
  if (error instanceof ConfigurationError) return 'configuration-error'
  if (handler === 'migrate') return 'migration-failed'
  return error instanceof SchemaError ? 'schema-refused' : 'database-error'
}

/** For what goes wrong before the installation's name is known. */
function fallbackTelemetry(handler: string): Telemetry {
  return createPowertoolsTelemetry({ installation: process.env.OUTBOX_INSTALLATION ?? 'unknown', handler })
}

function lazily<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
