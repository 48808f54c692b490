import { GetCallerIdentityCommand, GetSessionTokenCommand, STSClient } from '@aws-sdk/client-sts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sdkOptions, startTestServices, type TestServices } from '../support/local-services.js'

let services: TestServices
let client: STSClient
beforeAll(async () => {
  services = await startTestServices()
  client = new STSClient(sdkOptions(services.endpoint.url))
})
afterAll(async () => {
  client.destroy()
  await services.stop()
})

describe('the local STS, to the SDK', () => {
  it('tells who calls, by the access key', async () => {
    const { Arn, Account, UserId } = await client.send(new GetCallerIdentityCommand({}))
    expect({ Arn, Account, UserId }).toEqual({
      Arn: 'arn:aws:iam::000000000000:user/any',
      Account: '000000000000',
      UserId: 'any',
    })
    expect(services.calls()['sts.GetCallerIdentity']).toBe(1)
  })

  it('refuses what it does not have, and who does not sign', async () => {
    await expect(client.send(new GetSessionTokenCommand({}))).rejects.toMatchObject({ name: 'InvalidAction' })
    const answer = await fetch(services.endpoint.url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'Action=GetCallerIdentity&Version=2011-06-15',
    })
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain('<Code>MissingAuthenticationToken</Code>')
  })

  it('fails as fault rules say', async () => {
    services.faults.set({ rules: [{ service: 'sts', times: 1, fault: { kind: 'throttle' } }] })
    await expect(client.send(new GetCallerIdentityCommand({}))).rejects.toMatchObject({ name: 'Throttling' })
    services.faults.clear()
  })
})
