import type { FinalState, Findings } from '../checkers/final-state.ts'
import type { DrawnAction } from '../plan/swarm-options.ts'
import type { ClientAction } from '../workload/client-session.ts'

/**
 * An action of clients: one row of the table in `actions.ts`. A run draws the weights. `act` sends requests and records
 * them as operations in the history (`ClientSession.ask`), which the checkers examine at the end.
 */
export interface SwarmAction extends ClientAction, DrawnAction {
  /** Checkers that exist for this action only, by name. Those that concern many actions are in `swarm/swarm-run.ts`. */
  readonly checkers?: Readonly<Record<string, FinalChecker>>
}

/** Examines the history of a run and the contents of the disks at its end. */
export type FinalChecker = (state: FinalState) => Findings
