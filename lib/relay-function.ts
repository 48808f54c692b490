import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Duration, RemovalPolicy, type Size } from 'aws-cdk-lib'
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Architecture, Code, Function as LambdaFunction, RecursiveLoop, Runtime } from 'aws-cdk-lib/aws-lambda'
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs'
import { Construct } from 'constructs'
import { ConfigurationError } from '../src/core/errors.js'

export type HandlerName = 'relay' | 'cleanup' | 'monitor' | 'migrate'

/** One of the four functions. */
export interface RelayFunctionProps {
  readonly handler: HandlerName
  readonly description: string
  readonly environment: Readonly<Record<string, string>>
  readonly timeout: Duration
  readonly memory: Size
  readonly logRetention: RetentionDays
  /** What its role may do besides writing its own log. */
  readonly statements: readonly PolicyStatement[]
  /**
   * Whether a schedule invokes it, asynchronously.
   *
   * @default - only callers that wait for the answer do
   */
  readonly scheduled?: 'scheduled'
}

/** A handler with a role and a log group of its own. */
export class RelayFunction extends Construct {
  readonly function: LambdaFunction

  constructor(scope: Construct, id: string, props: RelayFunctionProps) {
    super(scope, id)

    const logGroup = new LogGroup(this, 'Logs', { retention: props.logRetention, removalPolicy: RemovalPolicy.DESTROY })

    const role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') })
    role.addToPolicy(
      new PolicyStatement({ actions: ['logs:CreateLogStream', 'logs:PutLogEvents'], resources: [logGroup.logGroupArn] }),
    )
    for (const statement of props.statements) role.addToPolicy(statement)

    this.function = new LambdaFunction(this, 'Function', {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      code: Code.fromAsset(handlerFolder(props.handler)),
      environment: { ...props.environment, NODE_OPTIONS: '--enable-source-maps' },
      timeout: props.timeout,
      memorySize: props.memory.toMebibytes(),
      role,
      logGroup,
      // An event that leads to a new row, which leads to an event, is legitimate and may go on for long: Lambda would stop
      // such a chain after about 16 turns, in the middle of a business process.
      ...(props.handler === 'relay' ? { recursiveLoop: RecursiveLoop.ALLOW } : {}),
      // Every tick is a hint and another follows: one that could not run at once is dropped, never stored up and replayed.
      ...(props.scheduled === undefined ? {} : { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
    })
  }
}

/** From the sources (lib/) and from the package (dist/esm/lib/, dist/cjs/lib/). */
function handlerFolder(handler: HandlerName): string {
  const candidates = [`../dist/lambdas/${handler}`, `../../lambdas/${handler}`].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const found = candidates.find((folder) => existsSync(`${folder}/index.mjs`))
  if (found !== undefined) return found
  throw new ConfigurationError(
    'build',
    `dist/lambdas/${handler}/index.mjs does not exist. Build the handlers first: npm run build`,
  )
}
