import { defineConfig } from 'vitest/config'

/** One project per test tier (CONTRIBUTING.md): `npx vitest run --project unit`. */
const tier = (
  name: string,
  options: {
    timeoutMs: number
    needsServices?: boolean
    alone?: boolean
    shared?: boolean
    only?: string
    not?: string
    setupFiles?: string[]
  },
) => ({
  extends: true as const,
  test: {
    name,
    include: [options.only ?? `test/${name}/**/*.test.ts`],
    ...(options.not === undefined ? {} : { exclude: [options.not] }),
    testTimeout: options.timeoutMs,
    hookTimeout: 60_000,
    setupFiles: options.setupFiles ?? [],
    // files that keep nothing to themselves in a module load the code of the product once, not each anew
    isolate: options.shared !== true,
    // after all the others and one file at a time
    ...(options.alone === true ? { maxWorkers: 1, sequence: { groupOrder: 1 } } : {}),
    ...(options.needsServices === true ? { globalSetup: ['test/support/global-setup.ts'] } : {}),
  },
})

const busy = 'test/chaos/eight-relays.test.ts'

export default defineConfig({
  test: {
    // most tests wait for a database, a timer or a process: more files at once than cores
    maxWorkers: 4,
    // a condition that is waited for may take long on a busy machine, and takes no longer than it must
    expect: { poll: { timeout: 15_000 } },
    reporters:
      process.env.OUTBOX_TEST_RESULTS === undefined
        ? ['default']
        : ['default', ['json', { outputFile: process.env.OUTBOX_TEST_RESULTS }]],
    coverage: { provider: 'v8', include: ['src/core/**/*.ts', 'src/store/**/*.ts'], reporter: ['text', 'json-summary'] },
    projects: [
      tier('unit', { timeoutMs: 10_000, shared: true }),
      tier('property', { timeoutMs: 60_000, shared: true }),
      tier('contract', { timeoutMs: 60_000, needsServices: true }),
      tier('integration', { timeoutMs: 120_000, needsServices: true, shared: true }),
      tier('infra', { timeoutMs: 60_000, needsServices: true, shared: true, setupFiles: ['test/infra/remove-assemblies.ts'] }),
      tier('e2e', { timeoutMs: 120_000, needsServices: true, shared: true }),
      // most of it waits for leases that run out; eight relays want the machine to themselves
      tier('chaos', { timeoutMs: 300_000, needsServices: true, not: busy }),
      tier('chaos-alone', { timeoutMs: 300_000, needsServices: true, alone: true, only: busy }),
    ],
  },
})
