export { createRdsDataClient, type RdsDataClientOptions } from '../data-api/client.js'
export { createDataApiDatabase, type DataApiDatabase, type DataApiDatabaseOptions } from '../data-api/database.js'
export {
  ConfigurationError,
  InvalidEventError,
  KeyBusyError,
  OutboxError,
  SqlError,
  type SqlFailureKind,
} from '../core/errors.js'
export type { SqlParameter, SqlResult, SqlRow, SqlStatement, SqlValue } from '../core/ports.js'
export type { Destination, Destinations } from '../core/destination.js'
export type { Route } from '../core/route.js'
export type { NewEvent } from './new-event.js'
export { createOutbox, type Outbox, type OutboxOptions, type OutboxTransaction, type TransactionOptions } from './outbox.js'
export type { OnWarning, OutboxWarning } from './warning.js'
