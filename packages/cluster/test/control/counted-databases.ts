/** Many databases whose records count the reads of their members. */
import type { DatabaseRecord } from '../../src/control/cluster-state.ts'
import { applyCommand, initialState } from '../../src/control/state-machine.ts'
import type { ControlState } from '../../src/control/state-machine.ts'
import { DatabaseMap } from '../../src/control/database-map.ts'
import type { Command } from '../../src/control/commands.ts'

export class CountedDatabases {
  state: ControlState
  /** Number of reads of members of the records that the constructor made. */
  reads = 0

  constructor(nodes: readonly string[], count: number) {
    this.state = nodes.reduce((state, node) => {
      const command = { type: 'admit-node', id: node, node, address: `${node}:1`, zone: null, fresh: true } as const
      return applyCommand(state, 1, command).state
    }, initialState('c'))
    for (let at = 0; at < count; at += 1) this.create(`db${at}`)
    const records = [...this.state.databases.values()].map(record =>
      new Proxy(record, { get: (target, name) => { this.reads += 1; return target[name as keyof DatabaseRecord] } }))
    this.state = { ...this.state, databases: DatabaseMap.from(records) }
    this.reads = 0
  }

  apply(command: Command): void { this.state = applyCommand(this.state, this.state.index + 1, command).state }

  create(name: string): void {
    this.apply({
      type: 'create-database', id: `create ${name}`, name, incarnation: `of ${name}`, q: 1, n: 3, partitioned: false,
      seed: 0,
    })
  }
}
