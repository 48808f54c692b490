import { ServiceError } from '../service-error.js'

export { ServiceError }

export function validation(message: string): ServiceError {
  return new ServiceError('ValidationException', message)
}

export function notFound(what: string, name: string): ServiceError {
  return new ServiceError('ResourceNotFoundException', `${what} ${name} does not exist.`)
}
