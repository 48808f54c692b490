import { existsSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { startPostgres, type LocalPostgres } from '../../src/local/postgres/launcher.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser's connection string of the run's PostgreSQL server, database `postgres`. */
    postgresUrl: string
  }
}

interface Services {
  readonly postgres: LocalPostgres
  users: number
}

/**
 * Vitest runs this once for every project that needs services, each with a module graph of its own; the run has one
 * server all the same, kept where all of them see it. The last project to end stops it.
 */
const shared = globalThis as { outboxTestServices?: Promise<Services> | undefined }

export async function setup(project: TestProject): Promise<void> {
  const services = await (shared.outboxTestServices ??= start())
  services.users++
  project.provide('postgresUrl', services.postgres.url())
}

export async function teardown(): Promise<void> {
  const services = await shared.outboxTestServices
  if (services === undefined || --services.users > 0) return
  shared.outboxTestServices = undefined
  await services.postgres.stop()
}

async function start(): Promise<Services> {
  const [postgres] = await Promise.all([startPostgres(), buildHandlers()])
  return { postgres, users: 0 }
}

/** The e2e and infra tiers run the bundles that are shipped. */
async function buildHandlers(): Promise<void> {
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))
  if (existsSync(script)) await promisify(execFile)(process.execPath, [script])
}
