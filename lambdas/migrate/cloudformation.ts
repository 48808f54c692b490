import { createHash } from 'node:crypto'
import type { Context } from 'aws-lambda'

/** What CloudFormation asks of a custom resource, as far as it matters here. Every value of a property arrives as text. */
interface DeploymentRequest {
  readonly RequestType: 'Create' | 'Update' | 'Delete'
  /** Where the answer goes: presigned, and good for one deployment. */
  readonly ResponseURL: string
  readonly StackId: string
  readonly RequestId: string
  readonly LogicalResourceId: string
  readonly PhysicalResourceId?: string
  readonly ResourceProperties?: Readonly<Record<string, unknown>>
}

/** CloudFormation takes 4,096 bytes in all, and a character has up to 4. */
const MAX_REASON_CHARACTERS = 800
const SEND_ATTEMPTS = 3
const SEND_TIMEOUT_MS = 5_000

/**
 * Lets a handler answer CloudFormation, too: a failure fails the deployment, with its reason in the stack's events. Any
 * other event is passed through.
 *
 * On delete nothing runs, so removing the stack removes no event. The resource's physical id says which release and
 * settings it was migrated for; an update that asks for just these is the roll-back of one that failed, and has nothing to
 * do. So a deployment that failed because the database is out of reach can be rolled back while it still is.
 */
export function answeringCloudFormation<Result>(
  run: (event: unknown, context: Context) => Promise<Result>,
): (event: unknown, context: Context) => Promise<Result | undefined> {
  return async (event, context) => {
    if (!isDeploymentRequest(event)) return run(event, context)
    const { RequestType, PhysicalResourceId } = event
    const physicalId = idOf(event.ResourceProperties)
    if (RequestType === 'Delete' || PhysicalResourceId === physicalId) {
      await answer(event, { Status: 'SUCCESS', PhysicalResourceId: PhysicalResourceId ?? physicalId })
      return undefined
    }
    let result: Result
    try {
      result = await run(event, context)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const where = ` (log group ${context.logGroupName}, stream ${context.logStreamName})`
      await answer(event, {
        Status: 'FAILED',
        Reason: reason.slice(0, MAX_REASON_CHARACTERS) + where,
        PhysicalResourceId: PhysicalResourceId ?? physicalId,
      })
      throw error
    }
    await answer(event, { Status: 'SUCCESS', PhysicalResourceId: physicalId })
    return result
  }
}

/** CloudFormation's call; people and Secrets Manager ask otherwise. */
export function isDeploymentRequest(event: unknown): event is DeploymentRequest {
  return typeof event === 'object' && event !== null && 'RequestType' in event && 'ResponseURL' in event
}

function idOf(properties: DeploymentRequest['ResourceProperties'] = {}): string {
  const sorted = Object.entries(properties).sort(([one], [other]) => (one < other ? -1 : 1))
  return `outbox-schema-${createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16)}`
}

async function answer(
  { ResponseURL, StackId, RequestId, LogicalResourceId }: DeploymentRequest,
  outcome: Readonly<Record<string, string>>,
): Promise<void> {
  // bytes, not text: fetch would name a content type, which the URL is not signed for
  const body = Buffer.from(JSON.stringify({ StackId, RequestId, LogicalResourceId, ...outcome }))
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(ResponseURL, { method: 'PUT', body, signal: AbortSignal.timeout(SEND_TIMEOUT_MS) })
      if (response.ok) return
      throw new Error(`CloudFormation's address answered ${response.status}`)
    } catch (error) {
      if (attempt === SEND_ATTEMPTS) throw error
    }
  }
}
