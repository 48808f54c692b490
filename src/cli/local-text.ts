import type { LocalStackDescription } from '../local/stack.js'

/** The same as the JSON line, for a person: what is where, and the lines to paste into a shell. */
export function readyText(stack: LocalStackDescription): string {
  const resources = [
    ['database', stack.databaseUrl],
    ['event bus', stack.eventBusName],
    ...Object.entries(stack.queues).map(([name, url]) => [`queue ${name}`, url] as const),
    ...Object.entries(stack.topics).map(([name, arn]) => [`topic ${name}`, arn] as const),
  ] as const
  const width = Math.max(...resources.map(([name]) => name.length))
  return [
    `The local stack is ready at ${stack.endpoint}. Ctrl-C stops it.`,
    '',
    ...resources.map(([name, where]) => `  ${name.padEnd(width)}  ${where}`),
    '',
    'Paste into another shell, for any AWS SDK and for outbox status, list, show:',
    '',
    // the SDK for Python reads AWS_DEFAULT_REGION alone
    `export AWS_ENDPOINT_URL=${stack.endpoint} AWS_REGION=${stack.region} AWS_DEFAULT_REGION=${stack.region}`,
    'export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local',
    `export OUTBOX_CLUSTER_ARN=${stack.resourceArn} OUTBOX_SECRET_ARN=${stack.secretArn} OUTBOX_DATABASE=${stack.database}`,
    '',
  ].join('\n')
}
