/** The attribute of queues and topics that says how many bytes they take. */
export const SIZE_ATTRIBUTE = 'MaximumMessageSize'

/** The attribute as a number; undefined if it is absent or none that a service gives (1,024 to 1,048,576). */
export function parseBytes(attribute: string | undefined): number | undefined {
  const bytes = Number(attribute)
  return Number.isInteger(bytes) && bytes >= 1024 && bytes <= 1_048_576 ? bytes : undefined
}
