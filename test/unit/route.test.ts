import { describe, expect, it } from 'vitest'
import { compileRoutes } from '../../src/core/route.js'

const route = compileRoutes({
  destinations: {
    bus: { type: 'eventbridge', eventBusName: 'bus' },
    orders: { type: 'sqs', queueUrl: 'https://sqs.us-east-1.amazonaws.com/123456789012/orders' },
  },
  routes: [
    { eventType: 'Order.*', to: 'orders', onFailure: 'skip' },
    { eventType: 'Order*', to: 'bus' },
    { eventType: 'Bill?d', to: 'orders' },
    { eventType: 'Old', to: 'gone' },
  ],
  defaultDestination: null,
})

describe('a route', () => {
  it('is the first that matches', () => {
    expect(route('Order.Created', null)).toEqual({ kind: 'to', destination: 'orders', onFailure: 'skip' })
    expect(route('OrderCreated', null)).toEqual({ kind: 'to', destination: 'bus', onFailure: 'block' })
  })

  it('matches the whole event type: * any run of characters, ? exactly one, everything else itself', () => {
    expect(route('Billed', null)).toMatchObject({ kind: 'to', destination: 'orders' })
    for (const type of ['Bilkled', 'Bill\u00e9\u00e9d', 'xBilled', 'Billedx', 'Billd', 'order.created']) {
      expect(route(type, null).kind).toBe('unrouted')
    }
    expect(route('Order\nCreated', null)).toMatchObject({ kind: 'to', destination: 'bus' })
  })

  it('is overruled by the destination that the row names, whose failures follow the matching route all the same', () => {
    expect(route('Order.Created', 'bus')).toEqual({ kind: 'to', destination: 'bus', onFailure: 'skip' })
    expect(route('Unmatched', 'orders')).toEqual({ kind: 'to', destination: 'orders', onFailure: 'block' })
  })

  it('that is missing is an answer which names the event type', () => {
    expect(route('Unmatched', null)).toEqual({
      kind: 'unrouted',
      destination: null,
      reason: 'no route matches event type "Unmatched", and there is no default destination',
    })
  })

  it('to a destination that is not configured is an answer which names both, and what is configured', () => {
    for (const routing of [route('Old', null), route('Old', 'gone')]) {
      expect(routing).toEqual({
        kind: 'unrouted',
        destination: 'gone',
        reason: 'event type "Old" goes to destination "gone", which is not configured (configured: bus, orders)',
      })
    }
    expect(route('Old', 'toString').kind).toBe('unrouted')
  })

  it('is the default where none matches', () => {
    const withDefault = compileRoutes({
      destinations: { bus: { type: 'eventbridge', eventBusName: 'bus' } },
      routes: [],
      defaultDestination: 'bus',
    })
    expect(withDefault('Anything', null)).toEqual({ kind: 'to', destination: 'bus', onFailure: 'block' })
  })
})
