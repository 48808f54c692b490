import { Annotations } from 'aws-cdk-lib'
import type { Construct } from 'constructs'
import type { Route } from '../src/core/route.js'
import type { OutboxDestination } from './destination.js'

/** What works, but hardly as it was meant; `Annotations.of(scope).acknowledgeWarning(id)` silences one. */
const id = (name: string): string => `aurora-outbox-relay:${name}`

/** FIFO orders the messages of one group, and the group is the ordering key: an event without one is a group of its own. */
export function warnOfUnorderedFifo(scope: Construct, name: string, { fifo }: OutboxDestination, routes: readonly Route[]): void {
  // `onFailure` is about later events of an ordering key, so whoever sets it writes one
  if (!fifo || routes.some((route) => route.to === name && route.onFailure !== undefined)) return
  Annotations.of(scope).addWarningV2(
    id('fifoWithoutOrderingKey'),
    `destinations.${name} is FIFO, but no route says that its events have an ordering key, and without one FIFO keeps no order. ` +
      `Write an ordering key with each of them, and set onFailure ("block" or "skip") on a route to ${name}`,
  )
}

/** A tick a minute keeps every cluster awake. */
export function warnOfSleeplessCluster(scope: Construct, profile: 'continuous' | 'drain', minCapacity: number | undefined): void {
  if (profile === 'drain' || minCapacity !== 0) return
  Annotations.of(scope).addWarningV2(
    id('continuousKeepsClusterAwake'),
    'profile is "continuous", but the minimum capacity of the cluster is 0, so that it can pause: the relay never lets it. ' +
      'Set profile to "drain", or the minimum capacity to 0.5',
  )
}
