/** What each alarm says to whoever it wakes. A test compares the sections and commands with docs/runbook.md. */
export interface AlarmText {
  /** Heading of its section in docs/runbook.md. */
  readonly section: string
  /** After "Outbox <installation>: ". What stands in angle brackets here, and in the command, the alarm fills in. */
  readonly meaning: string
  readonly firstCommand: string
}

const status = 'npx aurora-outbox-relay status'
const logsOf = (handler: 'relay' | 'monitor' | 'cleanup' | 'canary') =>
  `aws logs tail "<log group of the ${handler}>" --since 15m`

export const alarmCatalogue = {
  backlogAge: {
    section: 'Backlog age',
    meaning:
      'the oldest undelivered event has been due for more than <backlog age>, or nobody measures whether it has. No event is lost while this lasts',
    firstCommand: status,
  },
  failedEvents: {
    section: 'Failed events',
    meaning: 'events failed for good and wait for an operator; later events of their ordering keys may wait behind them',
    firstCommand: 'npx aurora-outbox-relay list --status failed',
  },
  relaySilent: {
    section: 'Relay silent',
    meaning: 'no relay pass has completed for some time. Events wait; none is lost',
    firstCommand: logsOf('relay'),
  },
  monitorSilent: {
    section: 'Monitor silent',
    meaning: 'nobody measures the backlog. Events may be delivered all the same, but no alarm would say if they were not',
    firstCommand: logsOf('monitor'),
  },
  relayErrors: {
    section: 'Relay errors',
    meaning: 'invocations of the relay end with an error or are killed by their timeout, again and again',
    firstCommand: logsOf('relay'),
  },
  relayThrottled: {
    section: 'Relay throttled',
    meaning: 'Lambda refuses to run the relay for want of concurrency, again and again',
    firstCommand: 'aws lambda get-account-settings',
  },
  ticksDropped: {
    section: 'Ticks dropped',
    meaning: 'ticks of the schedule are dropped before they reach the relay, again and again',
    firstCommand: 'aws lambda get-account-settings',
  },
  cleanupOverdue: {
    section: 'Cleanup overdue',
    meaning: 'for a day no cleanup has come to its end: none ran, or none had time enough. The tables grow; delivery goes on',
    firstCommand: 'aws logs tail "<log group of the cleanup>" --since 1d',
  },
  unroutedEvents: {
    section: 'Events without a destination',
    meaning: 'events wait because no route leads to a destination that is configured. They go out once there is one',
    firstCommand: status,
  },
  leaseLost: {
    section: 'Leases lost',
    meaning: 'relays lose their leases to each other, again and again: events arrive late, and some twice',
    firstCommand: logsOf('relay'),
  },
  dataApiErrors: {
    section: 'Data API errors',
    meaning: 'calls of the Data API fail, again and again. They are repeated where that is safe',
    firstCommand: logsOf('relay'),
  },
  destinationsMissing: {
    section: 'Destinations missing',
    meaning: 'a bus, queue or topic of the configuration is not there, or is not the one that was configured',
    firstCommand: logsOf('relay'),
  },
  circuitOpen: {
    section: 'Circuit open',
    meaning: 'a destination has been down for some minutes: its events are put aside, uncharged, and come back when it takes one',
    firstCommand: status,
  },
  destinationMisconfigured: {
    section: 'Destination misconfigured',
    meaning:
      'a destination refuses everything for a reason that waiting will not heal: a right, a key, or it is not there. Its events wait, uncharged',
    firstCommand: status,
  },
  canary: {
    section: 'Canary missing',
    meaning:
      'test events through destination <destination> do not come back in time: real ones may vanish too, though it accepts them',
    firstCommand: logsOf('canary'),
  },
} as const satisfies Readonly<Record<string, AlarmText>>

export type AlarmName = keyof typeof alarmCatalogue

/** Where an alarm's description sends its reader, in the package and in the repository. */
export const runbook = 'docs/runbook.md'
