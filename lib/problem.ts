import type { z } from 'zod'

/** What a value that zod refused must be, in the words of our error messages. */
export function whatItMustBe(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith('must ')) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(issue.expected)}`
    case 'invalid_value':
      return `must be one of ${issue.values.map((allowed) => show(allowed)).join(', ')}`
    case 'too_small':
      return issue.origin === 'string' ? `must have at least ${issue.minimum} characters` : `must be at least ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string' ? `must have at most ${issue.maximum} characters` : `must be at most ${issue.maximum}`
    case 'invalid_format':
      return `must be a valid ${issue.format}`
    case 'custom':
    case 'invalid_element':
    case 'invalid_key':
    case 'invalid_union':
    case 'not_multiple_of':
    case 'unrecognized_keys':
      return `is wrong: ${issue.message}`
  }
}

/** A value as a message shows it: JSON, at most 120 characters. */
export function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 120 ? `${text.slice(0, 120)}...` : text
}

function withArticle(type: string): string {
  const word = type === 'record' ? 'object' : type === 'int' ? 'whole number' : type
  return `${/^[aeiou]/.test(word) ? 'an' : 'a'} ${word}`
}
