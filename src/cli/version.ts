import { existsSync, readFileSync } from 'node:fs'

/** The package's version: from the nearest `package.json` above that is ours, be this file a source or built. */
export function packageVersion(): string {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder)
    if (existsSync(file)) {
      const parsed = JSON.parse(readFileSync(file, 'utf8')) as { readonly name?: string; readonly version?: string }
      if (parsed.name === 'aurora-outbox-relay' && parsed.version !== undefined) return parsed.version
    }
    if (folder.pathname === '/' || folder.href === new URL('..', folder).href) return 'unknown'
  }
}
