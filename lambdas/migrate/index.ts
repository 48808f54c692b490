import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { migrateSettings } from '../../src/config/settings.js'
import { deadlineAfter, earlier } from '../../src/core/deadline.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { createSecretsManagerClient } from '../../src/secrets/client.js'
import { isRotationStep, rotate } from '../../src/secrets/rotation.js'
import { readUsers } from '../../src/secrets/user-secrets.js'
import { migrate } from '../../src/store/migrator.js'
import { checkUser, makeUsers } from '../../src/store/users.js'
import { createHandler } from '../handler.js'
import { answeringCloudFormation, isDeploymentRequest } from './cloudformation.js'
import { untilNewResourcesAreKnown } from './new-resources.js'

/** Kept for the life of the process. */
let secretsManager: SecretsManagerClient | undefined

const migrateSchema = createHandler({
  name: 'migrate',
  settings: migrateSettings,
  schema: 'made',
  async run({ settings, database, telemetry, deadline, event }) {
    const { schema, installation, takeOverFrom, migrateSeconds, userSecrets: secrets } = settings
    const budget = deadlineAfter(systemClock, migrateSeconds * 1000)
    const context = { database, schema, clock: systemClock, deadline: earlier(budget, deadline) }
    const client = (secretsManager ??= createSecretsManagerClient())

    if (isRotationStep(event)) {
      const rotated = await rotate(event, {
        client,
        secrets,
        make: (user) => makeUsers(context, [user]),
        check: (user) => checkUser(context, user),
      })
      telemetry.log('user-secret-rotated', { step: event.Step, ...rotated })
      return rotated
    }

    const bringUpToDate = async () => {
      const report = await migrate(database, { ...context, installation, takeOverFrom: takeOverFrom ?? undefined })
      const users = await readUsers(client, secrets)
      await makeUsers(context, users)
      return { report, users }
    }
    const { report, users } = await (isDeploymentRequest(event)
      ? untilNewResourcesAreKnown(bringUpToDate, context)
      : bringUpToDate())
    telemetry.log('migration-completed', {
      schema: report.schema,
      schemaVersion: report.schemaVersion,
      applied: report.applied.join(', '),
      installation: report.installation,
      users: users.map(({ name }) => name).join(', '),
    })
    return { ...report, users: users.map(({ role, name }) => ({ role, name })) }
  },
})

/** Brings schema and database users to this release. CloudFormation runs it at deployment; repeats are harmless. Also rotates. */
export const handler = answeringCloudFormation(migrateSchema)
