import { readFileSync, readdirSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A temporary directory of its own for a command under test, so that what it leaves behind can be told from others' files. */
export interface OwnTemporary {
  /** To be given as TMPDIR. */
  readonly directory: string
  /** Names of what is in it. */
  readonly left: () => Promise<readonly string[]>
  readonly remove: () => Promise<void>
}

export async function ownTemporary(): Promise<OwnTemporary> {
  const directory = await mkdtemp(path.join(tmpdir(), 'outbox-test-'))
  await chmod(directory, 0o755) // PostgreSQL runs as another user when the tests run as root
  return {
    directory,
    left: () => readdir(directory),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

/** A process, told apart from a later one with the same number by when it began. */
export interface Process {
  readonly pid: number
  readonly startTime: string
  readonly command: string
}

interface Stat extends Process {
  readonly parent: number
}

/** All processes that this one started, and those that they started. */
export function descendantsOf(pid: number): readonly Process[] {
  const all = allProcesses()
  const found: Stat[] = []
  for (let parents = [pid]; parents.length > 0;) {
    const children = all.filter(({ parent }) => parents.includes(parent))
    found.push(...children)
    parents = children.map((child) => child.pid)
  }
  return found
}

/** Those of them that are still there; a zombie, which only waits for its parent to read its exit code, is not. */
export function stillAlive(processes: readonly Process[]): readonly Process[] {
  const all = allProcesses()
  return processes.filter(({ pid, startTime }) => all.some((one) => one.pid === pid && one.startTime === startTime))
}

function allProcesses(): readonly Stat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const text = readFileSync(`/proc/${name}/stat`, 'utf8')
        const command = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
        // proc(5): after the command come state, parent, and as the 20th the start time
        const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
        if (fields[0] === 'Z') return []
        return [{ pid: Number(name), parent: Number(fields[1]), startTime: fields[19] ?? '', command }]
      } catch {
        return [] // it ended meanwhile
      }
    })
}
