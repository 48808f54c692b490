import { z } from 'zod'

/** 1..64 letters, digits, `-` and `_`: a name travels in rows, metrics dimensions and environment variables. */
export const destinationName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, "-" or "_", beginning with a letter or digit')

const format = z.enum(['cloudevents', 'raw']).optional()
/** 1,048,576: the largest request of SQS and SNS; EventBridge's 1,000,000 is the publisher's own cap. */
const maxBytes = z.number().int().min(1024).max(1_048_576).optional()

export const destinationSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('eventbridge'), eventBusName: z.string().min(1), format, maxBytes }),
  z.strictObject({ type: z.literal('sqs'), queueUrl: z.url(), format, maxBytes }),
  z.strictObject({ type: z.literal('sns'), topicArn: z.string().startsWith('arn:'), format, maxBytes }),
])

export const destinationsSchema = z
  .record(destinationName, destinationSchema)
  .refine((destinations) => Object.keys(destinations).length > 0, 'must name at least one destination')

export const routesSchema = z.array(
  z.strictObject({
    /** `*` matches any run of characters, `?` one. */
    eventType: z.string().min(1),
    to: destinationName,
    onFailure: z.enum(['block', 'skip']).optional(),
  }),
)
