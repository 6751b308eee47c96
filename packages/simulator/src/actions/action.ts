import type { FinalState, Findings } from '../checkers/final-state.ts'
import type { DrawnAction } from '../plan/swarm-options.ts'
import type { ClientAction } from '../workload/client-session.ts'

/**
 * Something that a client does: one row of the table in `actions.ts`. A run draws the weights; `act` sends requests and
 * records them as operations in the history (`ClientSession.ask`); the checkers look at these operations at the end.
 */
export interface SwarmAction extends ClientAction, DrawnAction {
  /** Checkers that exist for this action, by name. Those that concern many actions stand in `swarm/swarm-run.ts`. */
  readonly checkers?: Readonly<Record<string, FinalChecker>>
}

/** Looks at the history of a run and at what lies on the disks at its end. */
export type FinalChecker = (state: FinalState) => Findings
