import { DatabaseMap } from './database-map.ts'
import { lacksReplicas } from './placement.ts'
import { usableMembers } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'

/**
 * Finds the databases that lack replicas that members could hold. Each update looks only at databases that changed, or
 * at all databases when the members changed.
 */
export class LackingDatabases {
  readonly #names = new Set<string>()
  #databases: ControlState['databases'] = DatabaseMap.from([])
  #membersSeen = ''

  /** Returns the names of the databases, in no particular order. */
  update(state: ControlState): ReadonlySet<string> {
    const usable = usableMembers(state)
    const members = Object.keys(usable).sort().join(' ')
    if (members !== this.#membersSeen) {
      this.#membersSeen = members
      this.#names.clear()
      this.#databases = DatabaseMap.from([])
    }
    for (const { before, after } of DatabaseMap.changed(this.#databases, state.databases)) {
      if (after !== undefined && lacksReplicas(usable, after)) this.#names.add(after.name)
      else this.#names.delete((after ?? before)!.name)
    }
    this.#databases = state.databases
    return this.#names
  }
}
