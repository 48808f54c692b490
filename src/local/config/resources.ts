import type { Destination, Destinations } from '../../core/destination.js'
import { ACCOUNT, REGION, nameOf } from '../front/protocol.js'

/** The queues, topics and buses that a set of destinations needs, by the names that people use for them. */
export interface ResourcePlan {
  /** The same destinations, in the local stack. */
  readonly destinations: Destinations
  /** Of destinations of type `sqs`, then `<destination>-target` of each bus and `<destination>-subscriber` of each topic. */
  readonly queues: Readonly<Record<string, string>>
  readonly topics: Readonly<Record<string, string>>
  readonly buses: Readonly<Record<string, string>>
  /** The queue, topic or bus behind one of these names; any other name as it is. */
  resourceOf(name: string): string
}

/**
 * Plans what to create: a queue, topic or bus has the last part of its URL, ARN or name; each bus sends all its events to a
 * queue, each topic has a queue subscribed.
 */
export function planResources(destinations: Destinations, endpointUrl: string): ResourcePlan {
  const own: Record<string, string> = {}
  const watching: Record<string, string> = {}
  const topics: Record<string, string> = {}
  const buses: Record<string, string> = {}
  const local = Object.entries(destinations).map(([name, destination]): [string, Destination] => {
    switch (destination.type) {
      case 'sqs': {
        const queue = (own[name] = nameOf(destination.queueUrl))
        return [name, { ...destination, queueUrl: localQueueUrl(endpointUrl, queue) }]
      }
      case 'sns': {
        const topic = (topics[name] = nameOf(destination.topicArn))
        watching[`${name}-subscriber`] = `${name}-subscriber${topic.endsWith('.fifo') ? '.fifo' : ''}`
        return [name, { ...destination, topicArn: `arn:aws:sns:${REGION}:${ACCOUNT}:${topic}` }]
      }
      case 'eventbridge': {
        const bus = (buses[name] = nameOf(destination.eventBusName))
        watching[`${name}-target`] = `${name}-target`
        return [name, { ...destination, eventBusName: bus }]
      }
    }
  })
  const resources: Readonly<Record<string, string>> = { ...watching, ...own, ...topics, ...buses }
  return {
    destinations: Object.fromEntries(local),
    queues: { ...own, ...watching },
    topics,
    buses,
    resourceOf: (name) => (Object.hasOwn(resources, name) ? (resources[name] ?? name) : name),
  }
}

export function localQueueUrl(endpointUrl: string, queueName: string): string {
  return `${endpointUrl}/${ACCOUNT}/${queueName}`
}

export function queueArn(queueName: string): string {
  return `arn:aws:sqs:${REGION}:${ACCOUNT}:${queueName}`
}
