import { ACCOUNT, errorAnswer, escapeXml, formOf, xmlAnswer } from '../front/protocol.js'
import type { LocalService } from '../service.js'

/** STS as far as operators need it: it tells who calls, which here is a user named after the access key, whatever that is. */
export const sts: LocalService = {
  handle(request) {
    const action = formOf(request).get('Action') ?? ''
    if (action !== 'GetCallerIdentity') {
      const message = `the local stack has no STS operation ${action}`
      return Promise.resolve(errorAnswer('sts', { name: 'InvalidAction', status: 400, message }))
    }
    const [, accessKeyId] = /Credential=([^/,\s]+)\//.exec(request.headers['authorization'] ?? '') ?? []
    if (accessKeyId === undefined) {
      const message = 'Request is missing Authentication Token'
      return Promise.resolve(errorAnswer('sts', { name: 'MissingAuthenticationToken', status: 403, message }))
    }
    const user = escapeXml(accessKeyId)
    const result = `<Arn>arn:aws:iam::${ACCOUNT}:user/${user}</Arn><UserId>${user}</UserId><Account>${ACCOUNT}</Account>`
    return Promise.resolve(xmlAnswer(action, result, 'sts'))
  },
  stop: () => Promise.resolve(),
}
