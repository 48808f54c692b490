import { existsSync, readFileSync } from 'node:fs'

export interface Manifest {
  readonly name?: string
  readonly version?: string
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** The nearest `package.json` above that is this package's, be this file a source or built; empty if there is none. */
export function ownManifest(): Manifest {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder)
    if (existsSync(file)) {
      const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest
      if (manifest.name === 'aurora-outbox-relay') return manifest
    }
    if (folder.href === new URL('..', folder).href) return {}
  }
}
