/** What a database user's secret holds: JSON with at least these two. */
export interface Login {
  readonly username: string
  readonly password: string
}

/** Undefined if the text is not such JSON. Never says what it read: it is a secret. */
export function parseLogin(text: string): Login | undefined {
  try {
    const { username, password } = JSON.parse(text) as Partial<Record<keyof Login, unknown>>
    return typeof username === 'string' && username !== '' && typeof password === 'string' ? { username, password } : undefined
  } catch {
    return undefined
  }
}
