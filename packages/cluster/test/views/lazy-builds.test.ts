import { expect } from 'chai'
import type { ShardId } from '@sectional/core'
import { scanView } from '../../src/views/view-scan.ts'
import type { ViewQuery } from '../../src/contracts/view-query.ts'
import { defaultCoordinatorOptions } from '../../src/contracts/coordinator-options.ts'
import type { ViewScope } from '../../src/views/view-scope.ts'
import { edit, request } from '../replica-world.ts'
import type { Fault } from '../replica-world.ts'
import { everything, IndexWorld, testRows } from './index-world.ts'

const storesFail: Fault = { kind: 'fail', code: 'storage', verbs: ['storeRevisions'] }
const other = { ...everything.definition, map: 'another one' }

async function queried(world: IndexWorld, scope: ViewScope, query: Partial<ViewQuery>): Promise<readonly string[]> {
  const answer = await world.during(scanView(scope, world.db, { ...everything, ...query }, request()))
  const rows = await world.during(testRows(answer.rows))
  await answer.close()
  return rows.map(({ id }) => id)
}

/** Writes documents with w = 2 through a node. */
async function write(world: IndexWorld, node: string, ...ids: readonly string[]): Promise<void> {
  const edits = ids.map(id => edit(id, null, { keys: [id], value: 1 }))
  await world.during(world.coordinator(node).updateDocuments(world.db, edits, { w: 2 }, request()))
}

/** Returns the nodes whose indexes were built. */
function builds({ calls }: IndexWorld): readonly string[] {
  return calls.filter(({ verb }) => verb === 'buildIndex').map(({ node }) => node)
}

describe('the build of a query with update=lazy', () => {
  interface Prepared {
    readonly world: IndexWorld
    readonly scope: ViewScope
    readonly shards: readonly ShardId[]
    /** Makes the replica of c lack a write. Resolves the write when it is called. */
    readonly lack: (shard?: ShardId) => (isStored: boolean) => Promise<void>
    readonly lazy: (query?: Partial<ViewQuery>) => Promise<readonly string[]>
  }

  /** Returns a world in which node c has indexes of two views. */
  async function prepared(q = 1): Promise<Prepared> {
    const world = new IndexWorld({ q })
    const scope = world.viewScope('c')
    const shards = scope.access.places(world.db).map(({ id }) => id)
    for (const definition of [everything.definition, other]) await queried(world, scope, { definition })
    world.calls.length = 0
    return {
      world, scope, shards,
      lack: (shard = shards[0]!) => {
        const store = Promise.withResolvers<boolean>()
        scope.unconfirmed.acknowledged(shard, 'c', store.promise)
        return async isStored => {
          store.resolve(isStored)
          await world.clock.advance(0)
        }
      },
      lazy: async query => {
        const ids = await queried(world, scope, { update: 'lazy', ...query })
        await world.clock.advance(0)
        return ids
      },
    }
  }

  it('has the acknowledged writes that anti-entropy brings', async () => {
    const { world, scope, lazy } = await prepared()
    world.faults.set('c', storesFail)
    await write(world, 'c', 'new')
    world.faults.clear()
    expect(await lazy()).to.deep.equal([])
    const drivers = world.nodes.map(node => world.antiEntropy(node))
    for (const driver of drivers) driver.start()
    await world.clock.advance(5_000)
    for (const driver of drivers) await driver.stop()
    expect(await queried(world, scope, { update: false })).to.deep.equal(['new'])
    expect(builds(world)).to.deep.equal(['c'])
  })

  it('waits for what was acknowledged before the query, and is shared by the queries that come meanwhile', async () => {
    const { world, scope, lack, lazy } = await prepared()
    const storeFirst = lack()
    await lazy()
    const storeSecond = lack()
    for (let i = 0; i < 5; i++) await lazy()
    expect(builds(world)).to.deep.equal([])
    await storeFirst(true)
    // The other queries need the second write, too.
    expect(builds(world)).to.deep.equal(['c'])
    await storeSecond(true)
    expect(builds(world)).to.deep.equal(['c', 'c'])
    expect(scope.background.running).to.equal(0)
    const storeThird = lack()
    await lazy()
    expect(scope.background.running).to.equal(1)
    await storeThird(true)
    expect(builds(world)).to.deep.equal(['c', 'c', 'c'])
    expect(scope.background.running).to.equal(0)
  })

  it('is one for each index and each shard', async () => {
    const { world, scope, shards, lack, lazy } = await prepared(2)
    const ids = ['d1', 'd2', 'd3', 'd4', 'd5', 'd6', 'd7', 'd8']
    await write(world, 'c', ...ids)
    const stores = shards.map(lack)
    for (const definition of [everything.definition, other]) expect(await lazy({ definition })).to.deep.equal([])
    for (const store of stores) await store(true)
    expect(builds(world)).to.deep.equal(['c', 'c', 'c', 'c'])
    for (const definition of [everything.definition, other]) {
      expect(await queried(world, scope, { definition, update: false })).to.deep.equal(ids)
    }
  })

  it('begins after some time without the write', async () => {
    const { world, scope, lack, lazy } = await prepared()
    lack()
    await lazy()
    await world.clock.advance(defaultCoordinatorOptions.missedWaitMs - 1)
    expect(builds(world)).to.deep.equal([])
    await world.clock.advance(defaultCoordinatorOptions.missedPollMs)
    expect(builds(world)).to.deep.equal(['c'])
    expect(scope.background.running).to.equal(0)
  })

  it('is begun by the next query when it fails', async () => {
    const { world, scope, lazy } = await prepared()
    await write(world, 'c', 'new')
    world.faults.set('c', { kind: 'fail', code: 'overloaded', verbs: ['buildIndex'] })
    for (let i = 0; i < 3; i++) expect(await lazy()).to.deep.equal([])
    world.faults.clear()
    expect(await lazy()).to.deep.equal([])
    expect(await queried(world, scope, { update: false })).to.deep.equal(['new'])
  })

  it('does not delay a stop', async () => {
    const { world, scope, lack, lazy } = await prepared()
    lack()
    await lazy()
    expect(scope.background.running).to.be.above(0)
    world.stopping.abort()
    await world.clock.advance(0)
    expect(scope.background.running).to.equal(0)
  })
})
