// The app of the run with IAM enforced: the stack of bin/app.ts, deployed with the caller's own credentials, whose relay may
// not send to the queue `withheld`.
import { readFileSync } from 'node:fs'
import { App, Aspects, CliCredentialsStackSynthesizer } from 'aws-cdk-lib'
import { CfnPolicy } from 'aws-cdk-lib/aws-iam'
import { OutboxRelayStack } from '../../lib/outbox-relay-stack.js'
import { parseStackConfig } from '../../lib/stack-config.js'

const app = new App()
const config = parseStackConfig(JSON.parse(readFileSync(app.node.tryGetContext('config'), 'utf8')))
const stack = new OutboxRelayStack(app, `outbox-relay-${config.installation}`, {
  config,
  synthesizer: new CliCredentialsStackSynthesizer(),
})

Aspects.of(stack).add({
  visit(node) {
    if (!(node instanceof CfnPolicy)) return
    const { Statement } = stack.resolve(node.policyDocument)
    Statement.forEach(({ Action, Resource }, index) => {
      if (JSON.stringify(Resource).includes(':withheld') && [Action].flat().includes('sqs:SendMessage'))
        node.addPropertyOverride(`PolicyDocument.Statement.${index}.Action`, 'sqs:GetQueueAttributes')
    })
  },
})
app.synth()
