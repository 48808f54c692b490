#!/usr/bin/env node
import { runCli } from '../src/cli/main.js'

// A reader that has seen enough (`outbox list | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  watched: process.stderr.isTTY,
  stopSignal: () => {
    const stop = new AbortController()
    // `on`, not `once`: a second Ctrl-C must not cut off the tidying up that the first one began
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort(signal))
    return stop.signal
  },
})
