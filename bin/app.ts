import { readFileSync } from 'node:fs'
import { App, type Environment } from 'aws-cdk-lib'
import { OutboxRelayStack } from '../lib/outbox-relay-stack.js'
import { parseStackConfig } from '../lib/stack-config.js'
import { ConfigurationError } from '../src/core/errors.js'

/** `config` of the context: a file's path (cdk.json, or `-c config=FILE`), or the configuration itself. */
function readConfig(context: unknown): unknown {
  if (typeof context !== 'string') {
    if (context !== undefined) return context
    throw new ConfigurationError('config', 'config is not set. Give a file: npx cdk synth -c config=FILE')
  }
  try {
    return JSON.parse(readFileSync(context, 'utf8'))
  } catch (error) {
    const reason = error instanceof SyntaxError ? `is not JSON (${error.message})` : 'cannot be read'
    throw new ConfigurationError('config', `config: the file "${context}" ${reason}`, { cause: error })
  }
}

function callersEnvironment(): Environment {
  const { CDK_DEFAULT_ACCOUNT: account, CDK_DEFAULT_REGION: region } = process.env
  return { account, region }
}

try {
  // not at exit: what was refused must not be synthesised all the same
  const app = new App({ autoSynth: false })
  const config = parseStackConfig(readConfig(app.node.tryGetContext('config')))
  // a stack's name takes neither "_" nor a leading digit
  new OutboxRelayStack(app, `outbox-relay-${config.installation.replaceAll('_', '-')}`, {
    config,
    // an existing cluster decides; a new one comes to where the caller's credentials lead, known or not
    ...(config.cluster.clusterArn === undefined ? { env: callersEnvironment() } : {}),
  })
  app.synth()
} catch (error) {
  // a mistake in the configuration is the user's: one line; anything else is ours: everything there is to know
  if (!(error instanceof ConfigurationError)) throw error
  process.stderr.write(`Configuration error: ${error.message}\n`)
  process.exitCode = 1
}
