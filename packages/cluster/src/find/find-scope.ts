import type { Coordinator } from '../contracts/coordinator.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { SortMemory } from './sort-memory.ts'
import type { ViewScope } from '../views/view-scope.ts'

/** The dependencies of queries by selector. */
export interface FindScope extends CoordinatorScope, ViewScope, Pick<Coordinator, 'openDocument'> {
  readonly sortMemory: SortMemory
}
