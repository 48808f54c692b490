import { randomUUID } from 'node:crypto'
import type { ServiceResponse } from '../service.js'

/** Names that the SDK knows, and those the service answers without having modelled them; with their HTTP status. */
const STATUS = {
  BadRequestException: 400,
  DatabaseErrorException: 400,
  DatabaseUnavailableException: 504,
  HttpEndpointNotEnabledException: 400,
  InternalServerErrorException: 500,
  InvalidSecretException: 400,
  MissingAuthenticationTokenException: 403,
  RequestEntityTooLargeException: 413,
  SecretsErrorException: 400,
  SerializationException: 400,
  StatementTimeoutException: 400,
  TransactionNotFoundException: 404,
  UnknownOperationException: 404,
  UnsupportedResultException: 400,
  ValidationException: 400,
} as const

export type DataApiFaultName = keyof typeof STATUS

/** An error as the Data API answers it. 5xx ones carry no message, as there. */
export class DataApiFault extends Error {
  readonly fault: DataApiFaultName
  readonly dbConnectionId: number | undefined

  constructor(fault: DataApiFaultName, message: string, dbConnectionId?: number) {
    super(message)
    this.fault = fault
    this.dbConnectionId = dbConnectionId
  }
}

export function answer(body: string): ServiceResponse {
  return { status: 200, headers: headers(), body }
}

export function answerFault(fault: DataApiFault): ServiceResponse {
  const status = STATUS[fault.fault]
  const body = status >= 500 ? {} : { message: fault.message, dbConnectionId: fault.dbConnectionId }
  return { status, headers: { ...headers(), 'x-amzn-errortype': fault.fault }, body: JSON.stringify(body) }
}

function headers(): Record<string, string> {
  return { 'content-type': 'application/json', 'x-amzn-requestid': randomUUID() }
}
