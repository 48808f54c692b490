#!/usr/bin/env node
import { runCli } from '../src/cli/main.js'

// Seven lines about Node.js 20 from the SDK, whose version this package pins: nothing that its user could act on.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'

let stop: AbortController | undefined

function stopSignal(): AbortSignal {
  const controller = (stop ??= new AbortController())
  // `on`, not `once`: a second Ctrl-C must not cut off the tidying up that the first one began
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => controller.abort(signal))
  return controller.signal
}

// A reader that has seen enough (`outbox list | head`) is no error; what has processes to stop stops them first.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', () => {
    if (stop === undefined) process.exit(0)
    stop.abort('EPIPE')
  })
}

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  watched: process.stderr.isTTY,
  stopSignal,
})
