/** The handlers that a stack runs: folders of `lambdas/`. */
export declare const handlers: readonly string[]

/** The source of each export of the package, by its name there. */
export declare const entryPoints: Readonly<Record<'writer' | 'inbox' | 'local' | 'cdk', string>>

/** The command, and what it starts by its path. */
export declare const commands: readonly string[]

export interface BuildResult {
  /** Bytes of each bundle, by its path. */
  readonly sizes: Readonly<Record<string, number>>
  /** Every file that went into a handler, relative to the repository. */
  readonly inputs: readonly string[]
}

/**
 * Builds `dist/`. Files are replaced whole and only where they changed, so it may run beside whatever uses them.
 *
 * @example
 * await build({ log: (line) => console.error(line) })
 */
export declare function build(options?: {
  /** Default: all four. */
  readonly handlers?: readonly string[]
  /** Gets a line for each source that does not exist yet. */
  readonly log?: (line: string) => void
}): Promise<BuildResult>
