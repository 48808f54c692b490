import path from 'node:path'
import { builtFile } from '../../src/local/lambda/package-root.js'
import { credentials, environmentName } from './cdk.js'
import { mustSucceed, ownEnvironment, runProgram } from './program.js'
import type { Site } from './site.js'
import { must, until, type Step } from './steps.js'

/** Ticks come every 60 s, and MiniStack looks every 10 s for what is due; the rest is for a busy machine. */
const TICK_SECONDS = 150

const STACK = 'outbox-relay-orders'

/** Deploy, relay, fail, update, destroy. */
export async function plainSteps(site: Site, signal: AbortSignal): Promise<readonly Step[]> {
  const { account, cdk, cluster } = site
  const orders = await account.queue('orders')
  const audit = await account.queue('audit')
  const bus = await account.bus('shop', 'shop')
  const first = {
    installation: 'orders',
    cluster,
    source: 'shop',
    destinations: { bus: { type: 'eventbridge', eventBusArn: bus.arn }, orders: { type: 'sqs', queueArn: orders.arn } },
    routes: [{ eventType: 'Order*', to: 'orders' }],
    default: 'bus',
    // MiniStack has no rotation by schedule (AWS::SecretsManager::RotationSchedule)
    passwordRotationDays: 0,
  }
  const config = await site.configured('first', first)
  const failing = await site.configured('failing', { ...first, cluster: { ...cluster, schema: 'taken' } })
  const second = await site.configured('second', {
    ...first,
    destinations: { ...first.destinations, audit: { type: 'sqs', queueArn: audit.arn } },
    routes: [{ eventType: 'Audit*', to: 'audit' }, ...first.routes],
    alarms: { backlogAgeSeconds: 120 },
  })
  const deploy = (...args: readonly string[]) => cdk.run('deploy', '--require-approval', 'never', '--progress', 'events', ...args)

  return [
    {
      name: 'npx cdk bootstrap',
      onFailure: 'ends-the-run',
      async show() {
        mustSucceed(await cdk.run('bootstrap', environmentName, ...config))
        return environmentName
      },
    },
    {
      name: 'npx cdk deploy puts the relay on an existing cluster',
      onFailure: 'ends-the-run',
      async show() {
        mustSucceed(await deploy(...config))
        const status = await account.stackStatus(STACK)
        must(status === 'CREATE_COMPLETE', `the stack is ${status ?? 'not there'}`)
        return `${STACK} ${status}`
      },
    },
    {
      name: 'the migration ran: the schema is there, and a database user for each function',
      async show() {
        const meta = await site.row('SELECT installation, schema_version::text AS version FROM outbox_meta')
        must(meta['installation'] === 'orders', `installation is ${meta['installation'] ?? 'not recorded'}`)
        const { users } = await site.row(
          `SELECT string_agg(u.rolname || ' (' || r.rolname || ')', ', ' ORDER BY u.rolname) AS users FROM pg_auth_members m
             JOIN pg_roles u ON u.oid = m.member JOIN pg_roles r ON r.oid = m.roleid WHERE u.rolcanlogin AND u.rolname LIKE 'orders%'`,
        )
        for (const role of ['relay', 'cleanup', 'monitor'])
          must(users?.includes(`orders_${role} (outbox_${role})`), `orders_${role} is missing; there are ${users ?? 'none'}`)
        return `schema version ${meta['version'] ?? ''}; ${users ?? ''}`
      },
    },
    {
      name: 'a failed migration fails the deployment, with its reason in the events, and is rolled back',
      async show() {
        await migrateForSomebodyElse(site, 'taken', signal)
        const { code } = await deploy(...failing)
        must(code !== 0, 'the deployment succeeded')
        const reason = (await account.stackEvents(STACK)).find((one) => one.includes('"orders" must not deliver from it'))
        must(reason, `no event gives the reason; there are: ${(await account.stackEvents(STACK)).slice(0, 10).join(' | ')}`)
        const status = await account.stackStatus(STACK)
        must(status === 'UPDATE_ROLLBACK_COMPLETE', `the stack is ${status ?? 'gone'}`)
        return `${status}: ${reason.slice(0, 300)}`
      },
    },
    {
      name: 'the relay of before goes on: a scheduled invocation takes a row of an SDK client to the queue',
      async show() {
        const id = await site.write('OrderCreated')
        const body = JSON.parse(await account.received(orders, id, TICK_SECONDS)) as {
          readonly id: string
          readonly source: string
        }
        must(body.id === id && body.source === 'shop', 'the message is not the CloudEvent of that row')
        return `event ${id}, relayed by nobody but the schedule`
      },
    },
    {
      name: 'another one arrives behind the bus, by its rule',
      async show() {
        const id = await site.write('CustomerMoved')
        await account.received(bus.target, id, TICK_SECONDS)
        const { status } = await until('its receipt', 30, signal, async () => {
          const found = await site.row('SELECT status FROM outbox_status WHERE id = CAST(:id AS uuid)', { id })
          return found['status'] === 'published' ? { status: 'published' } : undefined
        })
        return `event ${id}, ${status}`
      },
    },
    {
      name: 'an update to another configuration takes effect',
      async show() {
        mustSucceed(await deploy(...second))
        // a pass that began before the update ends with the old routes: 75 s at most, then a new one has begun
        const id = await until('an event by the new route', TICK_SECONDS, signal, async () => {
          const one = await site.write('AuditRequested')
          return account.received(audit, one, 2).then(
            () => one,
            () => undefined,
          )
        })
        return `event ${id} arrived by the new route`
      },
    },
    {
      name: 'npx cdk destroy removes the stack and no event',
      async show() {
        const waiting = await site.write('OrderLeftBehind', 'a destination that does not exist')
        const count = async () => (await site.row('SELECT count(*)::text AS events FROM outbox'))['events']
        const before = await count()
        mustSucceed(await cdk.run('destroy', '--force', ...second))
        const status = await account.stackStatus(STACK)
        must(status === undefined || status === 'DELETE_COMPLETE', `the stack is ${status ?? ''}`)
        const after = await count()
        must(after === before, `there were ${before ?? ''} events, there are ${after ?? ''}`)
        const left = await site.row('SELECT status FROM outbox_status WHERE id = CAST(:id AS uuid)', { id: waiting })
        must(left['status'] === 'pending', `the undelivered event is ${left['status'] ?? ''}`)
        return `${after ?? ''} events as before, the undelivered one still pending`
      },
    },
  ]
}

/** Another installation's outbox, in a schema of the same database. */
async function migrateForSomebodyElse(site: Site, schema: string, signal: AbortSignal): Promise<void> {
  const { clusterArn, secretArn, database } = site.cluster
  const migrate = [builtFile('esm', 'bin', 'outbox.js'), 'migrate', '--schema', schema, '--installation', 'somebody-else']
  mustSucceed(
    await runProgram(process.execPath, migrate, {
      env: {
        ...ownEnvironment(),
        AWS_ENDPOINT_URL: site.description.endpoint,
        AWS_REGION: site.description.region,
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
        OUTBOX_CLUSTER_ARN: clusterArn,
        OUTBOX_SECRET_ARN: secretArn,
        OUTBOX_DATABASE: database,
      },
      logFile: path.join(site.directory, 'logs', 'migrate.log'),
      signal,
    }),
  )
}
