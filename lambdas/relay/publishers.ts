import type { Destination, Destinations } from '../../src/core/destination.js'
import type { Publisher, Telemetry } from '../../src/core/ports.js'
import { systemClock } from '../../src/data-api/system-clock.js'
import { createEventBridgeClient } from '../../src/publishers/eventbridge/client.js'
import { describeBus } from '../../src/publishers/eventbridge/describe.js'
import { createEventBridgePublisher } from '../../src/publishers/eventbridge/publisher.js'
import { DestinationCheck, type Described, type DestinationState } from '../../src/publishers/destination-check.js'
import { createSnsClient } from '../../src/publishers/sns/client.js'
import { describeTopic } from '../../src/publishers/sns/describe.js'
import { createSnsPublisher } from '../../src/publishers/sns/publisher.js'
import { createSqsClient } from '../../src/publishers/sqs/client.js'
import { describeQueue } from '../../src/publishers/sqs/describe.js'
import { createSqsPublisher } from '../../src/publishers/sqs/publisher.js'
import { withheld } from '../../src/publishers/withheld.js'

export interface PublisherSettings {
  readonly destinations: Destinations
  readonly source: string
  readonly requestTimeoutMs: number
}

/**
 * Destination name -> publisher, for one pass.
 *
 * @param ownAccount - the account that the relay runs in, if it is known
 */
export type PublishersOfPass = (telemetry: Telemetry, ownAccount: string | undefined) => Promise<ReadonlyMap<string, Publisher>>

/** One destination with its client: how to look at it, and a publisher of it, once that is known. */
interface Wired extends Described {
  publisher(state: DestinationState | undefined): Publisher
}

/** Clients live as long as the process, so that the next pass finds their connections open; destinations are checked now and then. */
export function createPublishers(settings: PublisherSettings): PublishersOfPass {
  const wired = new Map(Object.entries(settings.destinations).map(([name, one]) => [name, wire(one, settings)] as const))
  const check = new DestinationCheck(wired, systemClock)
  return async (telemetry, ownAccount) => {
    const states = await check.states(telemetry, ownAccount)
    return new Map([...wired].map(([name, one]) => [name, one.publisher(states.get(name))]))
  }
}

/** A client of its own for each destination, so that one which hangs keeps no sockets from the others. */
function wire(destination: Destination, { source, requestTimeoutMs }: PublisherSettings): Wired {
  switch (destination.type) {
    case 'eventbridge': {
      const client = createEventBridgeClient({ requestTimeoutMs })
      const publisher = createEventBridgePublisher({ client, destination, source })
      return {
        resource: destination.eventBusName,
        describe: (signal, ownAccount) => describeBus(client, destination.eventBusName, ownAccount, signal),
        // queues and topics that are missing say so themselves
        publisher: (state) => (state?.problem === undefined ? publisher : withheld(publisher, state.problem)),
      }
    }
    case 'sqs': {
      const client = createSqsClient({ requestTimeoutMs })
      return {
        resource: destination.queueUrl,
        describe: (signal) => describeQueue(client, destination.queueUrl, signal),
        publisher: (state) => createSqsPublisher({ client, destination, source, ownMaxBytes: state?.maxBytes }),
      }
    }
    case 'sns': {
      const client = createSnsClient({ requestTimeoutMs })
      return {
        resource: destination.topicArn,
        describe: (signal) => describeTopic(client, destination.topicArn, signal),
        publisher: (state) => createSnsPublisher({ client, destination, source, ownMaxBytes: state?.maxBytes }),
      }
    }
  }
}
