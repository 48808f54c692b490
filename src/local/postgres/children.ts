import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Ids of the living processes that `pid` started. */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  try {
    const listed = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return listed.split(' ').filter(Boolean).map(Number)
  } catch {
    const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid='])
    const pairs = stdout
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number))
    return pairs.flatMap(([child, parent]) => (parent === pid && child !== undefined ? [child] : []))
  }
}

/** Whether the process still runs; a dead one that nobody has collected does not. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return !/^\d+ \(.*\) [ZX]/s.test(status)
}
