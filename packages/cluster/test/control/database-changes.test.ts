import { expect } from 'chai'
import type { ApiError } from '@sectional/core'
import { SeededRandom } from '@sectional/runtime'
import type { CommandBody, CommandResult } from '../../src/control/commands.ts'
import { defaultControlPlaneOptions } from '../../src/control/control-options.ts'
import { DatabaseChanges, type DatabaseChangesParts } from '../../src/control/database-changes.ts'
import { NotAppliedHereError } from '../../src/control/proposer.ts'
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

describe('the change of a database', () => {
  /** Returns changes through a node that knows an earlier database of the name, and what they submit. */
  function behind(
    results: Readonly<Record<string, CommandResult | Error>>, present: string | undefined,
  ): { readonly changes: DatabaseChanges; readonly submitted: string[]; readonly name: string } {
    const { db } = new ReplicaWorld({ nodes: ['a'], n: 1 })
    const submitted: string[] = []
    const changes = new DatabaseChanges({
      random: new SeededRandom(1), options: defaultControlPlaneOptions,
      find: async () => ({ ...db, incarnation: 'old' }),
      applied: () => present === undefined ? undefined : { ...db, incarnation: present },
      intents: () => undefined,
      proposer: { submit: async (command: CommandBody) => {
        const { incarnation } = command as { readonly incarnation: string }
        submitted.push(`${command.type} ${incarnation}`)
        const result = results[incarnation]!
        if (result instanceof Error) throw result
        return result
      } },
    } as unknown as DatabaseChangesParts)
    return { changes, submitted, name: db.name }
  }

  it('concerns the present one when the node knew an earlier one of the name', async () => {
    const { changes, name, submitted } = behind({ old: { kind: 'missing' }, new: { kind: 'done' } }, 'new')
    expect(await changes.deleteDatabase(name)).to.equal('deleted')
    await changes.setSecurity(name, {})
    expect(submitted).to.deep.equal([
      'delete-database old', 'delete-database new', 'set-security old', 'set-security new',
    ])
  })

  it('is refused as a conflict when it depends on a security object that has changed', async () => {
    const { changes, name } = behind({ old: { kind: 'changed' } }, 'old')
    const refusal: unknown = await changes.setSecurity(name, {}, { admins: {} }).catch((error: unknown) => error)
    expect(refusal).to.include({ error: 'conflict', status: 409 })
  })

  it('is refused as missing when the name was free meanwhile', async () => {
    for (const present of [undefined, 'old', 'new']) {
      const { changes, name } = behind({ old: { kind: 'missing' }, new: { kind: 'missing' } }, present)
      const refusal: ApiError = await changes.deleteDatabase(name).then(() => new Error('deleted'), error => error)
      expect(refusal).to.include({ error: 'not_found', status: 404 })
    }
  })

  it('is refused as unavailable when the node does not learn in time what is missing', async () => {
    const late = new NotAppliedHereError({ kind: 'missing' }, 'a', 'its disk is slow')
    const { changes, name } = behind({ old: late }, 'old')
    expect(await changes.deleteDatabase(name).catch((error: unknown) => error)).to.equal(late)
  })
})
