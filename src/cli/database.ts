import type { SqlDatabase } from '../core/ports.js'
import { createRdsDataClient } from '../data-api/client.js'
import { createDataApiDatabase } from '../data-api/database.js'
import type { Connection } from './connection.js'

/**
 * Runs `work` on the database that the connection names, and closes the connection's sockets.
 *
 * The region is the cluster's own, out of its ARN: no other one could answer.
 */
export async function withDatabase<Result>(
  connection: Connection,
  work: (database: SqlDatabase) => Promise<Result>,
): Promise<Result> {
  const region = connection.resourceArn.split(':')[3]
  const client = createRdsDataClient(region === undefined || region === '' ? {} : { region })
  try {
    const { resourceArn, secretArn, database, timeoutSeconds } = connection
    return await work(
      createDataApiDatabase({ client, resourceArn, secretArn, database, defaultDeadlineMs: timeoutSeconds * 1000 }),
    )
  } finally {
    client.destroy()
  }
}
