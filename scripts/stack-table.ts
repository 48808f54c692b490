// What docs/configuration.md says of the stack's configuration, from its schema. Written by settings-table.ts.
import { z } from 'zod'
import { whatItMustBe } from '../lib/problem.js'
import { type PropertyDoc, stackConfigSchema } from '../lib/stack-config-schema.js'

/** The tables of the stack's configuration: every property with what it may be, its default and its meaning. */
export function stackTables(): readonly string[] {
  const { destinations } = stackConfigSchema.shape
  const kinds = (destinations.valueType as z.ZodDiscriminatedUnion<readonly z.ZodObject[]>).options
  return [
    ...table(stackConfigSchema),
    ...kinds.flatMap((kind) => {
      const [type] = (kind.shape.type as z.ZodLiteral<string>).values
      return ['', `### A destination of type \`${type ?? ''}\``, '', ...table(kind)]
    }),
  ]
}

function table(schema: z.ZodObject): readonly string[] {
  return ['| property | value | default | meaning |', '| --- | --- | --- | --- |', ...rows(schema, '')]
}

function rows(schema: z.ZodObject, prefix: string): readonly string[] {
  return Object.entries(schema.shape).flatMap(([key, value]) => {
    const name = `${prefix}${key}`
    const said = (value as z.ZodType).meta() as Partial<PropertyDoc> | undefined
    if (said?.doc === undefined || said.otherwise === undefined) throw new Error(`${name} has no line of documentation`)
    const inner = unwrapped(value as z.ZodType)
    // an angle bracket is the beginning of a tag to Markdown
    const what = (said.value ?? valueOf(inner)).replaceAll('<', '&lt;')
    const cells = [`\`${name}\``, what, said.otherwise, said.doc]
    const row = `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
    return inner instanceof z.ZodObject ? [row, ...rows(inner, `${name}.`)] : [row]
  })
}

const unwrapped = (schema: z.ZodType): z.ZodType => (schema instanceof z.ZodOptional ? (schema.unwrap() as z.ZodType) : schema)

const shown = (values: Iterable<unknown>): string => [...values].map((value) => `\`${String(value)}\``).join(', ')

function valueOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodEnum) return shown(schema.options)
  if (schema instanceof z.ZodLiteral) return shown(schema.values)
  if (schema instanceof z.ZodNumber)
    return `${schema.format === 'safeint' ? 'whole number' : 'number'}, ${schema.minValue} to ${schema.maxValue}`
  if (schema instanceof z.ZodEmail) return 'e-mail address'
  if (schema instanceof z.ZodString) return textOf(schema)
  if (schema instanceof z.ZodArray)
    return `list${schema.element instanceof z.ZodString ? `: each ${textOf(schema.element)}` : ''}`
  return 'object'
}

/** A pattern is for machines: what people read is the message of whoever breaks it. */
function textOf(schema: z.ZodString): string {
  if (schema.maxLength !== null) return `text, ${schema.minLength ?? 0} to ${schema.maxLength} characters`
  const [issue] = schema.safeParse('\n').error?.issues ?? []
  return issue === undefined ? 'text' : whatItMustBe(issue).replace(/^must be /, '')
}
