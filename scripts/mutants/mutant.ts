/** A test that must go red. */
export interface Killer {
  /** Test file. */
  readonly file: string
  /** Part of its name, as the file spells it. */
  readonly test: string
}

/** One way to break the product that must not go unnoticed. */
export interface Mutant {
  readonly name: string
  /** What the broken code does, in words. */
  readonly breaks: string
  /** Source that is changed. */
  readonly file: string
  /** Text that the file has exactly once. */
  readonly find: string
  readonly replace: string
  /** What else of the same file has to change for it. */
  readonly also?: Pick<Mutant, 'find' | 'replace'>
  /** One of them is enough. */
  readonly killers: readonly Killer[]
}

/** The test tier that a test file belongs to, which is its project in vitest. */
export const tierOf = (file: string): string => file.split('/')[1] ?? ''

/**
 * The source with its break.
 *
 * @throws Error unless each text to find is there exactly once
 * @example
 * await writeFile(file, mutated(mutant, await readFile(file, 'utf8')))
 */
export function mutated({ name, file, also, ...change }: Mutant, source: string): string {
  return [change, ...(also === undefined ? [] : [also])].reduce((text, { find, replace }) => {
    const parts = text.split(find)
    if (parts.length !== 2)
      throw new Error(`mutant ${name}: ${file} has its text ${parts.length - 1} times; allowed: exactly once: ${find}`)
    return parts.join(replace)
  }, source)
}
