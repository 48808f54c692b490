import { isObject, nameOf, text } from '../front/protocol.js'
import type { Bus, Rule, Target } from './buses.js'
import { isFunctionArn, newBus, ruleArn } from './buses.js'
import { PatternError } from './pattern-error.js'
import { compilePattern } from './pattern.js'
import { ServiceError, notFound, validation } from './service-error.js'

type Body = Readonly<Record<string, unknown>>
type Operation = (buses: Map<string, Bus>, body: Body) => unknown

const NAME = /^[A-Za-z0-9._-]{1,64}$/
const BUS_NAME = /^[A-Za-z0-9._-]{1,256}$/
/** EventBridge allows five targets a rule. */
const MAX_TARGETS = 5

/** Everything but `PutEvents`: what SDK clients need to make and look at buses, rules and targets. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  CreateEventBus(buses, body) {
    const name = text(body['Name'])
    if (!BUS_NAME.test(name)) throw validation(`Value "${name}" at 'name' must match ${BUS_NAME.source}`)
    if (buses.has(name)) throw new ServiceError('ResourceAlreadyExistsException', `Event bus ${name} already exists.`)
    const bus = newBus(name)
    buses.set(name, bus)
    return { EventBusArn: bus.arn }
  },
  DeleteEventBus(buses, body) {
    const name = text(body['Name'])
    if (name === 'default') throw validation('Cannot delete event bus default.')
    if ((buses.get(name)?.rules.size ?? 0) > 0) throw validation(`Cannot delete event bus ${name}: it has rules.`)
    buses.delete(name)
    return {}
  },
  DescribeEventBus(buses, body) {
    const bus = busOf(buses, { EventBusName: body['Name'] })
    return { Name: bus.name, Arn: bus.arn }
  },
  ListEventBuses(buses, body) {
    const prefix = text(body['NamePrefix'])
    return {
      EventBuses: [...buses.values()]
        .filter(({ name }) => name.startsWith(prefix))
        .map(({ name, arn }) => ({ Name: name, Arn: arn })),
    }
  },
  PutRule(buses, body) {
    const bus = busOf(buses, body)
    const name = text(body['Name'])
    if (!NAME.test(name)) throw validation(`Value "${name}" at 'name' must match ${NAME.source}`)
    if (body['ScheduleExpression'] !== undefined) throw validation('ScheduleExpression is not supported by the local stack')
    const eventPattern = text(body['EventPattern'])
    const rule: Rule = {
      name,
      arn: ruleArn(bus, name),
      eventPattern,
      enabled: body['State'] !== 'DISABLED',
      description: text(body['Description']) || undefined,
      matches: compile(eventPattern),
      targets: bus.rules.get(name)?.targets ?? new Map<string, Target>(),
    }
    bus.rules.set(name, rule)
    return { RuleArn: rule.arn }
  },
  DescribeRule: (buses, body) => described(busOf(buses, body), ruleOf(buses, body, 'Name')),
  ListRules(buses, body) {
    const bus = busOf(buses, body)
    const prefix = text(body['NamePrefix'])
    return { Rules: [...bus.rules.values()].filter(({ name }) => name.startsWith(prefix)).map((rule) => described(bus, rule)) }
  },
  DeleteRule(buses, body) {
    const bus = busOf(buses, body)
    const name = text(body['Name'])
    if ((bus.rules.get(name)?.targets.size ?? 0) > 0) throw validation("Rule can't be deleted since it has targets.")
    bus.rules.delete(name)
    return {}
  },
  PutTargets(buses, body) {
    const rule = ruleOf(buses, body, 'Rule')
    const targets: unknown[] = Array.isArray(body['Targets']) ? body['Targets'] : []
    if (targets.length === 0) throw validation("Value at 'targets' must have at least 1 member")
    const parsed = targets.map(targetOf)
    if (new Set([...rule.targets.keys(), ...parsed.map(({ Id }) => Id)]).size > MAX_TARGETS) {
      throw new ServiceError('LimitExceededException', `The requested resource exceeds the maximum of ${MAX_TARGETS} targets.`)
    }
    for (const target of parsed) rule.targets.set(target.Id, target)
    return { FailedEntryCount: 0, FailedEntries: [] }
  },
  ListTargetsByRule: (buses, body) => ({ Targets: [...ruleOf(buses, body, 'Rule').targets.values()] }),
  RemoveTargets(buses, body) {
    const rule = ruleOf(buses, body, 'Rule')
    const ids: unknown[] = Array.isArray(body['Ids']) ? body['Ids'] : []
    for (const id of ids) rule.targets.delete(text(id))
    return { FailedEntryCount: 0, FailedEntries: [] }
  },
}

function busOf(buses: ReadonlyMap<string, Bus>, body: Body): Bus {
  const name = nameOf(body['EventBusName'] ?? 'default')
  const bus = buses.get(name)
  if (bus === undefined) throw notFound('Event bus', name)
  return bus
}

function ruleOf(buses: ReadonlyMap<string, Bus>, body: Body, field: 'Name' | 'Rule'): Rule {
  const bus = busOf(buses, body)
  const name = text(body[field])
  const rule = bus.rules.get(name)
  if (rule === undefined) throw notFound(`Rule on event bus ${bus.name}`, name)
  return rule
}

function described(bus: Bus, { name, arn, eventPattern, enabled, description }: Rule) {
  return {
    Name: name,
    Arn: arn,
    EventPattern: eventPattern,
    State: enabled ? 'ENABLED' : 'DISABLED',
    Description: description,
    EventBusName: bus.name,
  }
}

function compile(eventPattern: string): (event: unknown) => boolean {
  try {
    return compilePattern(eventPattern)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new ServiceError('InvalidEventPatternException', `Event pattern is not valid. Reason: ${error.message}`)
  }
}

function targetOf(target: unknown): Target {
  const { Id, Arn, SqsParameters, ...rest } = isObject(target) ? target : {}
  const id = text(Id)
  if (!NAME.test(id)) throw validation(`Value "${id}" at 'targets.id' must match ${NAME.source}`)
  const arn = text(Arn)
  if (!/^arn:aws:sqs:/.test(arn) && !isFunctionArn(arn))
    throw validation(`Target ${id}: the local stack delivers to SQS queues and to functions of its own only, not to "${arn}"`)
  const [other] = Object.keys(rest)
  if (other !== undefined) throw validation(`Target ${id}: ${other} is not supported by the local stack`)
  const group = isObject(SqsParameters) ? text(SqsParameters['MessageGroupId']) : ''
  return { Id: id, Arn: arn, ...(group === '' ? {} : { SqsParameters: { MessageGroupId: group } }) }
}
