/** The account that an ARN or a queue's URL names; undefined if it names none (a bus by its name alone). */
export function accountIn(resource: string | undefined): string | undefined {
  return /^arn:[^:]*:[^:]*:[^:]*:(\d{12}):/.exec(resource ?? '')?.[1] ?? /^https?:\/\/.*\/(\d{12})\//.exec(resource ?? '')?.[1]
}
