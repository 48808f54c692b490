import type { Destination, Destinations } from '../../src/core/destination.js'
import type { Publisher, Telemetry } from '../../src/core/ports.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { OwnLimits, type ReadBytes } from '../../src/publishers/own-limits.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { readTopicBytes } from '../../src/publishers/sns/own-limit.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { readQueueBytes } from '../../src/publishers/sqs/own-limit.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'

export interface PublisherSettings {
  readonly destinations: Destinations
  readonly source: string
  readonly requestTimeoutMs: number
}

/** Destination name -> publisher, for one pass. */
export type PublishersOfPass = (telemetry: Telemetry) => Promise<ReadonlyMap<string, Publisher>>

/** One destination with its client: a publisher of it, once its own limit is known, and how to read that. */
interface Wired {
  readonly readBytes?: ReadBytes
  publisher(ownMaxBytes: number | undefined): Publisher
}

/** Clients live as long as the process, so that the next pass finds their connections open; limits are read now and then. */
export function createPublishers(settings: PublisherSettings): PublishersOfPass {
  const wired = new Map(Object.entries(settings.destinations).map(([name, one]) => [name, wire(one, settings)] as const))
  const readers = [...wired].flatMap(([name, { readBytes }]) => (readBytes === undefined ? [] : [[name, readBytes] as const]))
  const limits = new OwnLimits(new Map(readers), systemClock)
  return async (telemetry) => {
    const bytes = await limits.read(telemetry)
    return new Map([...wired].map(([name, one]) => [name, one.publisher(bytes.get(name))]))
  }
}

/** A client of its own for each destination, so that one which hangs keeps no sockets from the others. */
function wire(destination: Destination, { source, requestTimeoutMs }: PublisherSettings): Wired {
  switch (destination.type) {
    case 'eventbridge': {
      const client = createEventBridgeClient({ requestTimeoutMs })
      return { publisher: () => createEventBridgePublisher({ client, destination, source }) }
    }
    case 'sqs': {
      const client = createSqsClient({ requestTimeoutMs })
      return {
        readBytes: (signal) => readQueueBytes(client, destination.queueUrl, signal),
        publisher: (ownMaxBytes) => createSqsPublisher({ client, destination, source, ownMaxBytes }),
      }
    }
    case 'sns': {
      const client = createSnsClient({ requestTimeoutMs })
      return {
        readBytes: (signal) => readTopicBytes(client, destination.topicArn, signal),
        publisher: (ownMaxBytes) => createSnsPublisher({ client, destination, source, ownMaxBytes }),
      }
    }
  }
}
