import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import type { IndexDefinition } from '@sectional/core'
import { cleanViews } from '../../src/views/view-cleanup.ts'
import type { ViewInfo } from '../../src/contracts/view-query.ts'
import { viewInfo } from '../../src/views/view-info.ts'
import { scanView } from '../../src/views/view-scan.ts'
import { request } from '../replica-world.ts'
import { definition, everything, IndexWorld, testRows } from './index-world.ts'
import type { TestDocument } from './index-world.ts'

const documents: readonly TestDocument[] = Array.from({ length: 20 }, (_, i) => ({ id: `d${i}`, keys: [i], value: i }))
const other: IndexDefinition = { ...definition, map: 'other' }

async function query(world: IndexWorld, node: string, queried = definition): Promise<number> {
  const asked = { ...everything, definition: queried }
  const answer = await world.during(scanView(world.viewScope(node), world.db, asked, request()))
  const rows = await world.during(testRows(answer.rows))
  await answer.close()
  return rows.length
}

function info(world: IndexWorld, node: string, ...asked: readonly IndexDefinition[]): Promise<ViewInfo> {
  return world.during(viewInfo(world.viewScope(node), world.db, asked, request()))
}

async function errorOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return error.error
    throw error
  }
  return undefined
}

describe('information about views', () => {
  it('counts what is not indexed on each replica, without building anything', async () => {
    const world = new IndexWorld({ q: 2, nodes: ['a', 'b'], n: 2 })
    await world.write(documents)
    const none = { file: 0, active: 0, external: 0 }
    for (let times = 0; times < 2; times++) {
      expect(await info(world, 'a', definition)).to.deep.equal({
        building: false, waiting: 0, readSequence: 0, pending: { minimum: 20, preferred: 20, total: 40 }, sizes: none,
        failedCount: 0, failures: [],
      })
    }
    await query(world, 'a')
    const built = await info(world, 'a', definition)
    expect(built.pending).to.deep.equal({ minimum: 0, preferred: 0, total: 20 })
    expect(built.readSequence).to.equal(20)
    expect(built.sizes.active).to.be.greaterThan(0)
    expect((await info(world, 'b', definition)).pending).to.deep.equal({ minimum: 0, preferred: 20, total: 20 })
    await world.write([{ id: 'late', keys: [], value: 0 }])
    expect((await info(world, 'a', definition)).pending).to.deep.equal({ minimum: 1, preferred: 1, total: 22 })
  })

  it('adds the sizes of several indexes, and reports the one that is furthest behind', async () => {
    const world = new IndexWorld({ q: 2, nodes: ['a', 'b'], n: 2 })
    await world.write(documents)
    await query(world, 'a')
    const one = await info(world, 'a', definition, { ...definition })
    expect(one).to.deep.equal(await info(world, 'a', definition))
    const behind = { minimum: 20, preferred: 20, total: 40 }
    expect(await info(world, 'a', definition, other)).to.deep.include({ readSequence: 0, pending: behind })
    await query(world, 'a', other)
    const both = await info(world, 'a', definition, other)
    expect(both).to.deep.include({ readSequence: 20, pending: { minimum: 0, preferred: 0, total: 20 } })
    expect(both.sizes.active).to.equal(2 * one.sizes.active)
    const none = { minimum: 0, preferred: 0, total: 0 }
    expect(await info(world, 'a')).to.deep.include({ readSequence: 0, pending: none })
  })

  it('reports builds', async () => {
    const world = new IndexWorld({ q: 1, nodes: ['a'], n: 1 })
    await world.write(documents)
    world.holdBuilds('a')
    const waiting = query(world, 'a')
    await world.during(Promise.resolve())
    expect(await info(world, 'a', definition)).to.include({ building: true, waiting: 1 })
    world.releaseBuilds('a')
    await waiting
    expect(await info(world, 'a', definition)).to.include({ building: false, waiting: 0 })
  })

  it('leaves out replicas that do not answer, and fails without any', async () => {
    const world = new IndexWorld({ q: 1, nodes: ['a', 'b', 'out'], n: 2 })
    await world.write(documents)
    await query(world, 'out')
    world.isolate('a')
    expect((await info(world, 'out', definition)).pending.total).to.equal(20)
    world.isolate('out')
    expect(await errorOf(info(world, 'out', definition))).to.equal('service unavailable')
  })
})

describe('the cleanup of views', () => {
  it('removes the indexes on all replicas that are not used any more', async () => {
    const world = new IndexWorld({ q: 2, nodes: ['a', 'b'], n: 2 })
    await world.write(documents)
    for (const node of ['a', 'b']) for (const each of [definition, other]) await query(world, node, each)
    await world.during(cleanViews(world.viewScope('a'), world.db, [other], request()))
    expect((await info(world, 'a', definition)).pending.total).to.equal(40)
    expect((await info(world, 'a', other)).pending.total).to.equal(0)
    expect(await query(world, 'a')).to.equal(documents.length)
  })

  it('does not need replicas that are down, unless all are', async () => {
    const world = new IndexWorld({ q: 1, nodes: ['a', 'b', 'out'], n: 2 })
    await world.write(documents)
    world.isolate('a')
    await world.during(cleanViews(world.viewScope('out'), world.db, [], request()))
    world.isolate('out')
    expect(await errorOf(world.during(cleanViews(world.viewScope('out'), world.db, [], request()))))
      .to.equal('service unavailable')
  })
})
