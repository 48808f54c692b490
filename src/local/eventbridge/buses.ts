import { ACCOUNT, REGION } from '../front/protocol.js'

export interface Target {
  readonly Id: string
  readonly Arn: string
  readonly SqsParameters?: { readonly MessageGroupId?: string }
}

export interface Rule {
  readonly name: string
  readonly arn: string
  readonly eventPattern: string
  readonly enabled: boolean
  readonly description: string | undefined
  readonly matches: (event: unknown) => boolean
  readonly targets: Map<string, Target>
}

export interface Bus {
  readonly name: string
  readonly arn: string
  readonly rules: Map<string, Rule>
}

/** A bus without rules; `default` is the one every account has. */
export function newBus(name: string): Bus {
  return { name, arn: `arn:aws:events:${REGION}:${ACCOUNT}:event-bus/${name}`, rules: new Map() }
}

/** A function of the local stack, without version or alias. */
export function isFunctionArn(arn: string): boolean {
  return new RegExp(`^arn:aws:lambda:${REGION}:${ACCOUNT}:function:[A-Za-z0-9_-]+$`).test(arn)
}

/** The ARN of a rule; on the default bus it does not name the bus. */
export function ruleArn(bus: Bus, name: string): string {
  return `arn:aws:events:${REGION}:${ACCOUNT}:rule/${bus.name === 'default' ? '' : `${bus.name}/`}${name}`
}
