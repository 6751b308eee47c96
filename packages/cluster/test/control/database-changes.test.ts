import { expect } from 'chai'
import { SeededRandom } from '@sectional/runtime'
import type { CommandBody } from '../../src/control/commands.ts'
import { defaultControlPlaneOptions } from '../../src/control/control-options.ts'
import { DatabaseChanges, type DatabaseChangesParts } from '../../src/control/database-changes.ts'
import { ReplicaWorld } from '../replica-world.ts'

describe('the creation of a database', () => {
  it('carries out a deletion of the name first that this node has promised', async () => {
    const { db } = new ReplicaWorld({ nodes: ['a'], n: 1 })
    const submitted: string[] = []
    let applied = db
    const changes = new DatabaseChanges({
      random: new SeededRandom(1), options: defaultControlPlaneOptions, applied: () => applied,
      find: async () => undefined,
      intents: () => ({ hides: (incarnation: string) => incarnation === db.incarnation }),
      proposer: { submit: async (command: CommandBody) => {
        submitted.push(command.type)
        if (command.type === 'create-database') applied = { ...db, incarnation: command.incarnation }
        return { kind: 'done' }
      } },
    } as unknown as DatabaseChangesParts)
    await changes.createDatabase(db.name, { q: 1, n: 1, partitioned: false })
    expect(submitted).to.deep.equal(['delete-database', 'create-database'])
  })
})
