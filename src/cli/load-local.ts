import { ConfigurationError } from '../core/errors.js'
import { ownManifest } from './manifest.js'

/**
 * Runs what needs the local stack. Some of its packages are optional peers, because nothing in an account uses them, and each
 * is loaded when it is needed.
 *
 * @throws ConfigurationError saying how to install them, if one is missing
 * @example
 * await loadLocal(async () => (await import('../local/stack.js')).startLocalStack())
 */
export async function loadLocal<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    const peers = localPeers()
    const missing = Object.keys(peers).find((name) => isMissing(name, error))
    if (missing === undefined) throw error
    const install = Object.entries(peers).map(([name, range]) => `"${name}@${range}"`)
    throw new ConfigurationError(
      missing,
      `the local stack needs the package ${missing}: npm install --save-dev ${install.join(' ')}`,
      { cause: error },
    )
  }
}

/** All peers but those of the construct: version by name. */
function localPeers(): Readonly<Record<string, string>> {
  const { peerDependencies = {} } = ownManifest()
  return Object.fromEntries(Object.entries(peerDependencies).filter(([name]) => !['aws-cdk-lib', 'constructs'].includes(name)))
}

/** Whether the error, or what caused it, is Node's about this package. */
function isMissing(name: string, error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const notFound = 'code' in error && (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND')
  return (notFound && error.message.includes(`'${name}'`)) || isMissing(name, error.cause)
}
