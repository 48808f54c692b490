import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Duration, RemovalPolicy, type Size, Validations } from 'aws-cdk-lib'
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Architecture, Code, Function as LambdaFunction, RecursiveLoop, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda'
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs'
import type { IQueue } from 'aws-cdk-lib/aws-sqs'
import { Construct, type IConstruct } from 'constructs'
import { ConfigurationError } from '../src/core/errors.js'

export type HandlerName = 'relay' | 'cleanup' | 'monitor' | 'migrate' | 'canary'

/** One of the functions. */
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
   * Where an invocation goes that failed or could not be run.
   *
   * @default - nowhere: the next tick makes up for it
   */
  readonly onFailure?: IQueue
  /** @default Tracing.DISABLED */
  readonly tracing?: Tracing
  /**
   * Invocations at once, kept free for this function and allowed to it.
   *
   * @default - the account's
   */
  readonly reservedConcurrency?: number
}

/** A handler with a role and a log group of its own. */
export class RelayFunction extends Construct {
  readonly function: LambdaFunction
  readonly logGroup: LogGroup
  /** Its role's rights, as a resource. */
  readonly policy: IConstruct
  readonly #role: Role

  constructor(scope: Construct, id: string, props: RelayFunctionProps) {
    super(scope, id)
    const { onFailure } = props

    this.logGroup = new LogGroup(this, 'Logs', { retention: props.logRetention, removalPolicy: RemovalPolicy.DESTROY })

    this.#role = new Role(this, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') })
    this.allow([
      new PolicyStatement({ actions: ['logs:CreateLogStream', 'logs:PutLogEvents'], resources: [this.logGroup.logGroupArn] }),
      ...props.statements,
      ...(onFailure === undefined
        ? []
        : [new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [onFailure.queueArn] })]),
    ])
    this.policy = this.#role.node.findChild('DefaultPolicy')

    this.function = new LambdaFunction(this, 'Function', {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      code: Code.fromAsset(handlerFolder(props.handler)),
      environment: { ...props.environment, NODE_OPTIONS: '--enable-source-maps' },
      timeout: props.timeout,
      memorySize: props.memory.toMebibytes(),
      role: this.#role,
      logGroup: this.logGroup,
      tracing: props.tracing,
      reservedConcurrentExecutions: props.reservedConcurrency,
      // An event that leads to a new row, which leads to an event, is legitimate and may go on for long: Lambda would stop
      // such a chain after about 16 turns, in the middle of a business process.
      ...(props.handler === 'relay' ? { recursiveLoop: RecursiveLoop.ALLOW } : {}),
      // Scheduler and CloudFormation invoke asynchronously, and both ask again by themselves: an invocation that could not run
      // at once is dropped, never stored up and replayed.
      retryAttempts: 0,
      maxEventAge: Duration.minutes(1),
      // not SqsDestination, which also grants to look at the queue
      ...(onFailure === undefined ? {} : { onFailure: { bind: () => ({ destination: onFailure.queueArn }) } }),
    })
    if (props.tracing !== undefined && props.tracing !== Tracing.DISABLED)
      Validations.of(this.policy).acknowledge({
        id: 'AwsSolutions-IAM5[Resource::*]',
        reason: 'X-Ray is sent trace segments; its two actions know no resource to be limited to.',
      })
  }

  /** Adds to its role's rights. */
  allow(statements: readonly PolicyStatement[]): void {
    for (const statement of statements) this.#role.addToPolicy(statement)
  }

  /** Sets environment variables anew. */
  configure(environment: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(environment)) this.function.addEnvironment(name, value)
  }
}

/** From the sources (lib/) and from the package (dist/esm/lib/, dist/cjs/lib/). */
export function handlerFolder(handler: HandlerName): string {
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
