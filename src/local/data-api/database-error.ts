import { DataApiFault } from './fault.js'

/** What PostgreSQL said, as `pg` reports it. */
interface ServerError extends Error {
  readonly severity?: string
  readonly code?: string
  readonly detail?: string
  readonly hint?: string
  readonly position?: string
  readonly where?: string
}

/** No connection at all: nothing was sent. */
export function connectFault(error: unknown): DataApiFault {
  const { code = '', message } = error as ServerError
  if (code === '28P01' || code === '28000') return new DataApiFault('InvalidSecretException', `${message}; SQLState: ${code}`)
  // 3D000 no such database, 42501 no right to connect
  if (code === '3D000' || code === '42501')
    return new DataApiFault('DatabaseErrorException', `ERROR: ${message}; SQLState: ${code}`)
  return new DataApiFault('DatabaseUnavailableException', message)
}

/**
 * A statement failed. The text is laid out as AWS's PostgreSQL driver does it: the only place where clients find the
 * SQLSTATE. `hasParameters`: our casts have moved the error's position, so it is left out.
 */
export function statementFault(error: unknown, hasParameters: boolean): DataApiFault {
  const { severity, code, message, detail, hint, position, where } = error as ServerError
  if (severity === undefined || code?.length !== 5) {
    // the connection broke while the statement ran: nobody knows what became of it
    return new DataApiFault('DatabaseErrorException', `An I/O error occurred while sending to the backend.; SQLState: 08006`)
  }
  if (code === '42601' && message.includes('multiple commands')) {
    return new DataApiFault('ValidationException', "Multistatements aren't supported.")
  }
  const lines = [
    `${severity}: ${message}`,
    ...(detail === undefined ? [] : [`  Detail: ${detail}`]),
    ...(hint === undefined ? [] : [`  Hint: ${hint}`]),
    ...(position === undefined || hasParameters ? [] : [`  Position: ${position}`]),
    ...(where === undefined ? [] : [`  Where: ${where}`]),
  ]
  return new DataApiFault('DatabaseErrorException', `${lines.join('\n')}; SQLState: ${code}`)
}
