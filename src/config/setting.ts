import type { z } from 'zod'

/** One setting of a handler: the single place that knows its name, range, default and meaning. */
export interface Setting<Value> {
  /** Environment variable. */
  readonly env: string
  /** Reads the variable's text. */
  readonly parse: z.ZodType<Value, string>
  /** Used when the variable is absent or empty; undefined: the setting is required. */
  readonly default: Value | undefined
  /** `ms`, `s`, `bytes`, `rows`, ... or `''`. */
  readonly unit: string
  /** One line: what it does, and what the default means. */
  readonly doc: string
}

export type Settings = Readonly<Record<string, Setting<unknown>>>

/** The values that a set of settings parses to. */
export type SettingValues<S extends Settings> = {
  readonly [Name in keyof S]: S[Name] extends Setting<infer Value> ? Value : never
}
