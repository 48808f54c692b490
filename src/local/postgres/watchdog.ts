import { spawn } from 'node:child_process'

/**
 * Ends the server and removes the temporary directory when this process dies, however it dies: a small shell waits on a
 * pipe that only we hold open. It leads a session of its own, so Ctrl-C in a terminal does not reach it.
 */
export interface Watchdog {
  /** Ends the watchdog without any effect. */
  dismiss(): void
}

const SCRIPT = `
read -r _
if pid=$(head -n 1 "$1/postmaster.pid" 2>/dev/null); then
  kill -INT "$pid" 2>/dev/null
  tries=0
  while [ -e "$1/postmaster.pid" ]; do
    tries=$((tries + 1))
    [ $tries -eq 50 ] && kill -QUIT "$pid" 2>/dev/null
    [ $tries -gt 100 ] && { kill -KILL "$pid" 2>/dev/null; break; }
    sleep 0.1
  done
fi
rm -rf "$2"
`

export function startWatchdog(dataDirectory: string, temporaryDirectory: string): Watchdog {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'sh', dataDirectory, temporaryDirectory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    detached: true,
  })
  shell.unref()
  // the pipe must not keep this process alive, nor its end throw
  shell.stdin.on('error', () => undefined)
  ;(shell.stdin as unknown as { unref(): void }).unref()
  return {
    dismiss: () => {
      shell.kill('SIGKILL')
    },
  }
}
