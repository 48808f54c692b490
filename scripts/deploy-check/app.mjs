// The app of bin/app.ts for MiniStack: the stack as it is, but for what MiniStack understands otherwise than CloudFormation.
// With the context `iam=enforced`: deployed with the caller's own credentials, and the relay may not send to the queue
// `withheld`.
import { readFileSync, writeFileSync } from 'node:fs'
import { App, Aspects, CliCredentialsStackSynthesizer } from 'aws-cdk-lib'
import { CfnPolicy } from 'aws-cdk-lib/aws-iam'
import { OutboxRelayStack } from '../../lib/outbox-relay-stack.js'
import { parseStackConfig } from '../../lib/stack-config.js'

const app = new App()
const isEnforced = app.node.tryGetContext('iam') === 'enforced'
const config = parseStackConfig(JSON.parse(readFileSync(app.node.tryGetContext('config'), 'utf8')))
const stack = new OutboxRelayStack(app, `outbox-relay-${config.installation}`, {
  config,
  ...(isEnforced ? { synthesizer: new CliCredentialsStackSynthesizer() } : {}),
})
if (isEnforced) Aspects.of(stack).add({ visit: adaptSending })
for (const { templateFullPath } of app.synth().stacks) referToSecretsByAttribute(templateFullPath)

/** On AWS `sqs:SendMessage` is the right for single messages and for batches; MiniStack has an action for each. */
function adaptSending(node) {
  if (!(node instanceof CfnPolicy)) return
  const { Statement } = stack.resolve(node.policyDocument)
  Statement.forEach(({ Action, Resource }, index) => {
    const actions = [Action].flat()
    if (!actions.includes('sqs:SendMessage')) return
    const isWithheld = JSON.stringify(Resource).includes(':withheld')
    node.addPropertyOverride(
      `PolicyDocument.Statement.${index}.Action`,
      isWithheld ? actions.filter((action) => action !== 'sqs:SendMessage') : [...actions, 'sqs:SendMessageBatch'],
    )
  })
}

/** CloudFormation answers `Ref` of a secret and its attribute `Id` with the ARN; MiniStack answers `Ref` with the name. */
function referToSecretsByAttribute(file) {
  const template = JSON.parse(readFileSync(file, 'utf8'))
  const isSecret = (id) => template.Resources[id]?.Type === 'AWS::SecretsManager::Secret'
  const inPlace = (_key, value) => (isSecret(value?.Ref) ? { 'Fn::GetAtt': [value.Ref, 'Id'] } : value)
  writeFileSync(file, JSON.stringify(template, inPlace, 1))
}
