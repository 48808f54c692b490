import type { InjectedFault } from './data-api.js'

const timedOut = { name: 'StatementTimeoutException', message: 'Request timed out. dbConnectionId: 1' }
const unavailable = { name: 'DatabaseUnavailableException', status: 504, message: '' }
const broken = {
  name: 'DatabaseErrorException',
  message: 'ERROR: terminating connection due to administrator command; Error code: 0; SQLState: 57P01',
}

/** What becomes of a call of the Data API, and whether it had its effect before. */
export const callFailures: readonly (readonly [what: string, fault: InjectedFault])[] = [
  ['has its effect, and its reply is lost', { kind: 'drop-reply' }],
  ['never arrives', { kind: 'reset' }],
  ['has its effect and is answered 504', { kind: 'error-after', ...unavailable }],
  ['has no effect and is answered 504', { kind: 'error', ...unavailable }],
  ['has its effect and is answered 500', { kind: 'error-after', name: 'InternalServerErrorException', status: 500 }],
  ['is committed and answered as a statement timeout', { kind: 'error-after', ...timedOut }],
  ['is cancelled by the statement timeout', { kind: 'error', ...timedOut }],
  ['is committed before a failover breaks its connection', { kind: 'error-after', ...broken }],
  ['is broken off by a failover', { kind: 'error', ...broken }],
  ['is sent twice by an SDK that does not tell', { kind: 'twice' }],
]
