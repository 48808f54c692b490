import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ServiceRequest, ServiceResponse } from '../service.js'

/** The emulator of SQS and SNS, called in process: a port of its own would be open to the whole network. */
export interface Fauxqs {
  handle(request: Pick<ServiceRequest, 'headers' | 'body'>): Promise<ServiceResponse>
  stop(): Promise<void>
}

export async function createFauxqs(): Promise<Fauxqs> {
  const { buildApp } = await import('fauxqs')
  await allowAllCharactersOfSqs()
  const app = buildApp({ logger: false, defaultRegion: 'us-east-1' })
  await app.ready()
  return {
    async handle({ headers, body }) {
      // without `authorization` every caller is in the default region; `host` makes the queue URLs of sqs.ts
      const { 'content-type': contentType = '', 'x-amz-target': target = '' } = headers
      const answer = await app.inject({
        method: 'POST',
        url: '/',
        headers: { host: 'localhost', 'content-type': contentType, 'x-amz-target': target },
        payload: body,
      })
      const sent = Object.entries(answer.headers).filter(([name]) => /^(content-type|x-amz)/.test(name))
      return {
        status: answer.statusCode,
        headers: Object.fromEntries(sent.map(([name, value]) => [name, String(value)])),
        body: answer.rawPayload,
      }
    },
    stop: () => app.close(),
  }
}

/**
 * fauxqs 1.9.2 takes the halves of a surrogate pair for invalid characters, and so refuses every emoji, which SQS takes.
 * Its expression is not configurable but shared, so its `test` is replaced; sqs.ts refuses what SQS refuses.
 */
async function allowAllCharactersOfSqs(): Promise<void> {
  const manifest = findManifest()
  const types = pathToFileURL(join(dirname(manifest), 'dist/sqs/sqsTypes.js')).href
  const { INVALID_MESSAGE_BODY_CHAR } = (await import(types)) as { INVALID_MESSAGE_BODY_CHAR: RegExp }
  INVALID_MESSAGE_BODY_CHAR.test = () => false
}

function findManifest(): string {
  const require = createRequire(import.meta.url)
  for (const folder of require.resolve.paths('fauxqs') ?? []) {
    const manifest = join(folder, 'fauxqs/package.json')
    try {
      readFileSync(manifest)
      return manifest
    } catch {
      // not in this folder
    }
  }
  throw new Error('the package fauxqs is not installed: npm install --save-dev fauxqs@1.9.2')
}
