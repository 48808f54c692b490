import { z } from 'zod'
import { SERVICES } from '../front/protocol.js'

const fault = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('error'),
    name: z.string().min(1),
    status: z.number().int().min(400).max(599).default(400),
    message: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('throttle') }),
  z.strictObject({ kind: z.literal('latency'), ms: z.number().int().min(1).max(600_000) }),
  z.strictObject({ kind: z.literal('drop-reply') }),
  z.strictObject({ kind: z.literal('reset') }),
  z.strictObject({
    kind: z.literal('entry-error'),
    code: z.string().min(1),
    senderFault: z.boolean().default(false),
    message: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('entry-missing') }),
  z.strictObject({ kind: z.literal('swallow') }),
  z.strictObject({ kind: z.literal('resuming'), seconds: z.number().min(0.1).max(600) }),
])

export type Fault = z.infer<typeof fault>

/** These happen to single messages of a request, the others to the request. */
export const ENTRY_FAULTS: readonly Fault['kind'][] = ['entry-error', 'entry-missing', 'swallow']

const rule = z
  .strictObject({
    service: z.enum(SERVICES),
    /** As in the API, e.g. `SendMessageBatch`; all if absent. */
    operation: z
      .string()
      .regex(/^[A-Z][A-Za-z]+$/, 'must be the name of an operation, e.g. "SendMessageBatch"')
      .optional(),
    /** A destination's name, or that of a queue, topic or bus; all if absent. */
    destination: z.string().min(1).optional(),
    /** Chance, of each request or entry that fits. */
    rate: z.number().gt(0).max(1).default(1),
    /** Hits after which the rule rests; without end if absent. */
    times: z.number().int().min(1).optional(),
    /** Text that the entry, or the SQL, must contain. */
    match: z.string().min(1).optional(),
    fault,
  })
  .superRefine(({ service, destination, fault: { kind } }, context) => {
    const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
    if (kind === 'resuming' && service !== 'rds-data') refuse(['fault', 'kind'], 'must be another: only rds-data resumes')
    if (service === 'sqs' || service === 'sns' || service === 'events') return
    if (ENTRY_FAULTS.includes(kind))
      refuse(['fault', 'kind'], `must be one of error, throttle, latency, drop-reply, reset, resuming: ${service} has no entries`)
    if (destination !== undefined) refuse(['destination'], `must be absent: ${service} has no destinations`)
  })

/** The body of `PUT /_local/faults`. */
export const faultsSchema = z.strictObject({
  /** Of the dice behind `rate`. */
  seed: z.number().int().min(0).max(4_294_967_295).default(1),
  rules: z.array(rule),
})

export type FaultRule = z.output<typeof rule>
export type FaultSetting = z.input<typeof faultsSchema>
export type FaultReport = { readonly seed: number; readonly rules: readonly (FaultRule & { readonly hits: number })[] }
