import { expect } from 'chai'
import fc from 'fast-check'
import { ReplicaError } from '@sectional/core'
import type { Leaf, ShardReplica } from '@sectional/core'
import { ManualClock, MemoryStorage } from '@sectional/runtime'
import { ShardHost, verifyShard } from '../../src/index.ts'
import { collect, context, revision, shardA, shardRuntime } from '../shard-world.ts'

type Step =
  | { readonly kind: 'store' | 'purge'; readonly id: string; readonly hash: string }
  | { readonly kind: 'trim'; readonly through: number }
  | { readonly kind: 'settle' }
  | { readonly kind: 'read'; readonly limit: number }

const named = { id: fc.constantFrom('a', 'b', 'c'), hash: fc.constantFrom('x', 'y') }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('store' as const), ...named }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('purge' as const), ...named }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('trim' as const), through: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 4 }) }) },
)

/**
 * The reader's position is before a purge when the record of the purge is deleted. Random steps seldom reach this
 * state.
 */
const forgottenPurge: Step[] = [
  { kind: 'store', id: 'a', hash: 'x' }, { kind: 'settle' }, { kind: 'read', limit: 4 },
  { kind: 'purge', id: 'a', hash: 'x' }, { kind: 'settle' }, { kind: 'trim', through: 8 }, { kind: 'settle' },
]

function namesOf(leaves: readonly Leaf[]): string {
  return leaves.map(leaf => leaf.revision).join()
}

/** Keeps the last row of each document, as an index does. */
class Reader {
  documents = new Map<string, string>()
  sequence = 0
  resets = 0

  async read(replica: ShardReplica, limit = 100): Promise<void> {
    try {
      const request = { since: this.sequence, descending: false, body: false, locals: false, purges: true, limit }
      for (const { id, sequence, leaves, purged } of await collect(replica.scanChanges(request, context))) {
        if (purged) this.documents.delete(id)
        else this.documents.set(id, namesOf(leaves))
        this.sequence = sequence
      }
    } catch (error) {
      if (!(error instanceof ReplicaError) || error.code !== 'position_expired') throw error
      this.resets++
      this.sequence = 0
      this.documents = new Map()
      await this.read(replica, limit)
    }
  }
}

describe('a reader of changes and purges', () => {
  it('holds what the replica holds, whatever is written, purged and forgotten while it reads', async () => {
    let resets = 0
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async steps => {
      const host = await ShardHost.open(shardRuntime(new MemoryStorage(), new ManualClock()))
      const engine = await host.create(shardA)
      const reader = new Reader()
      let writes: Promise<unknown>[] = []
      for (const [index, each] of steps.entries()) {
        if (each.kind === 'store') {
          const request = { revisions: [revision(each.id, [each.hash], {})], revsLimit: 100, external: true }
          writes.push(engine.storeRevisions(request, context))
        } else if (each.kind === 'purge') {
          const purge = { uuid: String(index), id: each.id, paths: [{ start: 1, ids: [each.hash] }] }
          writes.push(engine.purgeDocuments({ purges: [purge] }, context))
        } else if (each.kind === 'trim') writes.push(engine.trimPurges(each.through, context))
        else if (each.kind === 'read') await reader.read(engine, each.limit)
        else writes = (await Promise.all(writes), [])
      }
      await Promise.all(writes)
      await reader.read(engine)
      const everything = { since: 0, descending: false, body: false, locals: false }
      const rows = await collect(engine.scanChanges(everything, context))
      const held = rows.map(({ id, leaves }) => [id, namesOf(leaves)])
      expect(Object.fromEntries(reader.documents)).to.deep.equal(Object.fromEntries(held))
      expect((await verifyShard(engine.records)).problems).to.deep.equal([])
      await host.close()
      resets += reader.resets
    }), { numRuns: 400, examples: [[forgottenPurge]] })
    expect(resets).to.be.above(0)
  }).timeout(60_000)
})
