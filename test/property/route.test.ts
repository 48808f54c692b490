import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileRoutes } from '../../src/core/route.js'

const destinations = { bus: { type: 'eventbridge', eventBusName: 'bus' } } as const
const matches = (glob: string, type: string) =>
  compileRoutes({ destinations, routes: [{ eventType: glob, to: 'bus' }], defaultDestination: null })(type, null).kind === 'to'

/** Text full of what means something in a regular expression. */
const text = fc.string({
  unit: fc.constantFrom('a', 'b', '.', '+', '*', '?', '\\', '[', ']', '(', '|', '^', '$', '{', '\n'),
  maxLength: 12,
})

/** The textbook matcher, by recursion. */
function reference(glob: string, type: string): boolean {
  if (glob === '') return type === ''
  if (glob.startsWith('*')) return reference(glob.slice(1), type) || (type !== '' && reference(glob, type.slice(1)))
  return type !== '' && (glob.startsWith('?') || glob[0] === type[0]) && reference(glob.slice(1), type.slice(1))
}

describe('a glob', () => {
  it('matches exactly what its two wildcards say, whatever other characters it has', () => {
    fc.assert(fc.property(text, text, (glob, type) => matches(glob, type) === reference(glob, type)))
    fc.assert(fc.property(text, (type) => matches(type, type) && matches('*', type)))
  })
})

describe('a routing', () => {
  it('has one destination for every event, and it is a configured one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ eventType: text, to: fc.constantFrom('bus', 'gone') })),
        fc.constantFrom(null, 'bus', 'gone'),
        text,
        fc.constantFrom(null, 'bus', 'gone', '__proto__'),
        (routes, defaultDestination, type, chosen) => {
          const routing = compileRoutes({ destinations, routes, defaultDestination })(type, chosen)
          const first = routes.find(({ eventType }) => reference(eventType, type))
          const expected = chosen ?? first?.to ?? defaultDestination
          expect(routing.destination).toBe(expected)
          expect(routing.kind).toBe(expected === 'bus' ? 'to' : 'unrouted')
        },
      ),
    )
  })
})
