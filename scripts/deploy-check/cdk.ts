import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { ACCOUNT, REGION } from '../../src/local/front/protocol.js'
import { ownEnvironment, runProgram } from './program.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Any credentials will do; with IAM enforced, these are the account's root user's. */
export const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

export interface CdkOptions {
  /** Of the emulated account. */
  readonly endpoint: string
  /** For all that the CDK writes: its cache of who is which account, assets, templates. */
  readonly directory: string
  /** Whether the relay goes without a right, and the deployment by the caller's own (app.mjs). */
  readonly iam: 'enforced' | 'ignored'
  readonly signal: AbortSignal
}

export interface Cdk {
  /** Runs `npx cdk` with these arguments, and answers with its exit code and output. */
  run(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }>
}

/** The CDK's own command line, as a person runs it, with an account that is an emulator. */
export function createCdk({ endpoint, directory, iam, signal }: CdkOptions): Cdk {
  const env = {
    ...ownEnvironment(),
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_EC2_METADATA_DISABLED: 'true',
    // it remembers which account a key belongs to
    CDK_HOME: path.join(directory, 'cdk-home'),
    CDK_DISABLE_VERSION_CHECK: '1',
    CI: '1',
  }
  const app = ['--app', 'node --import tsx scripts/deploy-check/app.mjs', '-c', `iam=${iam}`]
  const always = ['--no-notices', '--output', path.join(directory, 'cdk.out'), ...app]
  return {
    run: (...args) =>
      runProgram('npx', ['cdk', ...args, ...always], {
        env,
        cwd: root,
        logFile: path.join(directory, 'logs', 'cdk.log'),
        signal,
      }),
  }
}

/** Where the account's own things are made before the stack. */
export const environmentName = `aws://${ACCOUNT}/${REGION}`
