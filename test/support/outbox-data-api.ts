import type { RDSDataClient } from '@aws-sdk/client-rds-data'
import { afterAll } from 'vitest'
import { createRdsDataClient } from '../../src/data-api/client.js'
import { createDataApiDatabase, type DataApiDatabase } from '../../src/data-api/database.js'
import { schemaSql } from '../../src/store/postgres/schema-sql.js'
import { startTestDataApi, type TestDataApi } from './data-api.js'

export interface ServiceDatabase {
  readonly server: TestDataApi
  readonly client: RDSDataClient
  /** As the service's own user: member of `outbox_writer`, owner of nothing. */
  readonly database: DataApiDatabase
  readonly resourceArn: string
  readonly secretArn: string
}

/** A database with the outbox, a table `orders (id bigint primary key)`, and a user as a service has it. */
export async function startServiceDatabase(
  limits: { transactionIdleMs?: number; statementTimeoutMs?: number } = {},
): Promise<ServiceDatabase> {
  const server = await startTestDataApi({ limits })
  await server.db.query(schemaSql({ schema: 'public' }))
  const user = `service_${server.database}`
  await server.db.query(`CREATE ROLE ${user} LOGIN`)
  await server.db.query(`GRANT outbox_writer TO ${user}`)
  await server.db.query('CREATE TABLE orders (id bigint PRIMARY KEY)')
  await server.db.query(`GRANT SELECT, INSERT, UPDATE ON orders TO ${user}`)
  const client = createRdsDataClient(server.clientConfig)
  const arns = { resourceArn: server.resourceArn, secretArn: server.secretFor(user) }
  // hooks run last in, first out: this one before the server stops
  afterAll(async () => {
    client.destroy()
    await server.db.query(`DROP OWNED BY ${user}`)
    await server.db.query(`DROP ROLE ${user}`)
  })
  return { server, client, ...arns, database: createDataApiDatabase({ client, ...arns, database: server.database }) }
}
