import { isObject, text } from '../front/protocol.js'

export const ENTRY_ID = /^[A-Za-z0-9_-]{1,80}$/

/** A character that SQS takes in no message: it allows #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF. */
export const CONTENT = /[^\u{9}\u{A}\u{D}\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u

const ATTRIBUTE_NAME = /^[A-Za-z0-9_.-]{1,256}$/
/** Group and deduplication ids: letters, digits and ASCII punctuation. */
const FIFO_ID = /^[!-~]{1,128}$/

export interface Problem {
  readonly name: string
  readonly message: string
}

/** Why SQS would refuse this message, as far as fauxqs does not see it itself; undefined if it would not. */
export function messageProblem(message: Readonly<Record<string, unknown>>): Problem | undefined {
  const body = message['MessageBody']
  if (typeof body !== 'string' || body === '') {
    return { name: 'MissingParameter', message: 'The request must contain the parameter MessageBody.' }
  }
  if (CONTENT.test(body)) {
    const allowed = '#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF'
    return { name: 'InvalidMessageContents', message: `Invalid characters found. Valid unicode characters are ${allowed}` }
  }
  for (const name of ['MessageGroupId', 'MessageDeduplicationId']) {
    const id = message[name]
    if (id !== undefined && !FIFO_ID.test(text(id))) {
      const allowed = 'Can only include alphanumeric and punctuation characters. 1 to 128 in length'
      return { name: 'InvalidParameterValue', message: `Value for parameter ${name} is invalid. Reason: ${allowed}` }
    }
  }
  return attributesProblem(message['MessageAttributes'])
}

function attributesProblem(attributes: unknown): Problem | undefined {
  const invalid = (message: string) => ({ name: 'InvalidParameterValue', message })
  if (!isObject(attributes)) return undefined
  const entries = Object.entries(attributes)
  if (entries.length > 10) return invalid(`Number of message attributes [${entries.length}] exceeds the allowed maximum [10].`)
  for (const [name, attribute] of entries) {
    if (!ATTRIBUTE_NAME.test(name))
      return invalid('The message attribute name can have A-Z, a-z, 0-9, underscore, hyphen and period.')
    const type = isObject(attribute) ? text(attribute['DataType']) : ''
    if (!/^(String|Number|Binary)(\.|$)/.test(type)) {
      return invalid(
        `The message attribute '${name}' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.`,
      )
    }
    const value = isObject(attribute) ? text(attribute[type.startsWith('Binary') ? 'BinaryValue' : 'StringValue']) : ''
    if (value === '') return invalid(`The message attribute '${name}' must contain a non-empty message attribute value.`)
    if (CONTENT.test(value))
      return { name: 'InvalidMessageContents', message: `The message attribute '${name}' has invalid characters.` }
  }
  return undefined
}
