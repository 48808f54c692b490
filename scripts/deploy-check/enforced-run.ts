import { environmentName } from './cdk.js'
import { mustSucceed } from './program.js'
import type { Site } from './site.js'
import { must, until, type Step } from './steps.js'

/** Ticks come every 60 s, and MiniStack looks every 10 s for what is due; the rest is for a busy machine. */
const TICK_SECONDS = 150

/** With IAM enforced: what the relay has rights for works, what it has none for is refused. */
export async function enforcedSteps(site: Site, signal: AbortSignal): Promise<readonly Step[]> {
  const { account, cdk, cluster } = site
  const orders = await account.queue('orders')
  const withheld = await account.queue('withheld')
  const bus = await account.bus('shop', 'shop')
  const config = await site.configured('enforced', {
    installation: 'orders',
    cluster,
    source: 'shop',
    destinations: {
      bus: { type: 'eventbridge', eventBusArn: bus.arn },
      orders: { type: 'sqs', queueArn: orders.arn },
      withheld: { type: 'sqs', queueArn: withheld.arn },
    },
    routes: [
      { eventType: 'Order*', to: 'orders' },
      { eventType: 'Withheld*', to: 'withheld' },
    ],
    default: 'bus',
    // MiniStack has no rotation by schedule (AWS::SecretsManager::RotationSchedule)
    passwordRotationDays: 0,
  })

  return [
    {
      name: 'cdk bootstrap and cdk deploy, the migration with its own role',
      onFailure: 'ends-the-run',
      async show() {
        mustSucceed(await cdk.run('bootstrap', environmentName, ...config))
        mustSucceed(await cdk.run('deploy', '--require-approval', 'never', '--progress', 'events', ...config))
        return 'deployed'
      },
    },
    {
      name: 'the relay has the rights for its queue',
      async show() {
        const id = await site.write('OrderCreated')
        await account.received(orders, id, TICK_SECONDS)
        return `event ${id}`
      },
    },
    {
      name: 'the relay has the rights for its bus',
      async show() {
        const id = await site.write('CustomerMoved')
        await account.received(bus.target, id, TICK_SECONDS)
        return `event ${id}`
      },
    },
    {
      name: 'without the right to send to a queue the relay is refused, and the event stays pending with that reason',
      async show() {
        const id = await site.write('WithheldOrder')
        const { status, code } = await until('an attempt', TICK_SECONDS, signal, async () => {
          const found = await site.row('SELECT status, last_error_code AS code FROM outbox_status WHERE id = CAST(:id AS uuid)', {
            id,
          })
          return typeof found['code'] === 'string' ? { status: found['status'], code: found['code'] } : undefined
        })
        must(status === 'pending', `the event is ${status ?? ''}`)
        must(/AccessDenied/.test(code), `the error is ${code}`)
        return `event ${id} ${status}: ${code}`
      },
    },
  ]
}
