/** What a run is made of, and what it must therefore show. */
export interface Scenario {
  readonly doc: string
  /** Services whose requests meet faults. */
  readonly faults: readonly ('destinations' | 'database')[]
  /** Relay processes are killed, frozen, timed out and replaced. */
  readonly processes: boolean
  /** PostgreSQL is killed and recovers. */
  readonly databaseCrashes: boolean
  /** Operators redrive, discard, release and replay. */
  readonly operators: boolean
  /** Some events are charged an attempt: entries are refused beside accepted ones. */
  readonly charges: boolean
}

export const scenarios = {
  mixed: {
    doc: 'everything at once (the default)',
    faults: ['destinations', 'database'],
    processes: true,
    databaseCrashes: true,
    operators: true,
    charges: true,
  },
  database: {
    doc: 'faults of the Data API and crashes of PostgreSQL alone: no event may be charged or fail for them',
    faults: ['database'],
    processes: false,
    databaseCrashes: true,
    operators: true,
    charges: false,
  },
  destinations: {
    doc: 'faults of SQS, SNS and EventBridge alone',
    faults: ['destinations'],
    processes: false,
    databaseCrashes: false,
    operators: true,
    charges: true,
  },
  processes: {
    doc: 'relays that are killed, frozen past their lease, timed out and replaced, and nothing else',
    faults: [],
    processes: true,
    databaseCrashes: false,
    operators: true,
    charges: false,
  },
  calm: {
    doc: 'no fault at all: what the others are compared with',
    faults: [],
    processes: false,
    databaseCrashes: false,
    operators: false,
    charges: false,
  },
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof scenarios

export const scenarioNames = Object.keys(scenarios) as ScenarioName[]
