/** An error that EventBridge answers a whole request with. */
export class ServiceError extends Error {
  readonly status: number

  constructor(name: string, message: string, status = 400) {
    super(message)
    this.name = name
    this.status = status
  }
}

export function validation(message: string): ServiceError {
  return new ServiceError('ValidationException', message)
}

export function notFound(what: string, name: string): ServiceError {
  return new ServiceError('ResourceNotFoundException', `${what} ${name} does not exist.`)
}
