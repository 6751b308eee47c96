import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import type { PurgeRow, ShardReplica } from '@sectional/core'
import { expect } from 'chai'
import { compareDigests } from '../../src/anti-entropy/digest-compare.ts'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import { bytes, plainCall } from '../replica-world.ts'
import { WatchedReplica } from '../watched-replica.ts'

const options = { batchDocumentsMax: 3, batchBytesMax: 120, checkpointRows: 4 }
const revsLimit = 1000

/**
 * A replica that can begin a new history between any two calls. A node finds the current replica for each call of a
 * peer.
 */
class ReplicaOfManyLives {
  current: MemoryShardReplica
  calls = 0
  /** Runs before the call with that number. */
  before: { readonly call: number; readonly run: () => Promise<void> } | undefined
  readonly shown: ShardReplica

  constructor(life: MemoryShardReplica) {
    this.current = life
    this.shown = new WatchedReplica({ replica: () => this.current, onCall: () => this.#reached() })
  }

  async #reached(): Promise<void> {
    if (this.before?.call === ++this.calls) await this.before.run()
  }
}

async function store(replica: ShardReplica, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await replica.storeRevisions(
      { revisions: [{ id, path: { start: 1, ids: ['r'] }, deleted: false, body: bytes({ id }) }], revsLimit },
      plainCall,
    )
  }
}

/**
 * Rebuilds the replica with a new history that has everything but the damaged records: the document `b`, and the record
 * of its purge.
 */
async function rebuild(replica: ReplicaOfManyLives, history: string): Promise<void> {
  const life = new MemoryShardReplica({ history })
  const purges = (await recordedPurges(replica.current)).filter(({ id }) => id !== 'b0')
  if (purges.length > 0) {
    await life.purgeDocuments({ purges: purges.map(({ uuid, id, paths }) => ({ uuid, id, paths })) }, plainCall)
  }
  await store(life, ...(await documentIds(replica.current)).filter(id => id !== 'b'))
  replica.current = life
}

async function documentIds(replica: ShardReplica): Promise<string[]> {
  const ids: string[] = []
  for await (const page of replica.scanDocuments({ descending: false, body: false, leaves: false }, plainCall)) {
    ids.push(...page.map(row => row.id))
  }
  return ids
}

async function recordedPurges(replica: ShardReplica): Promise<PurgeRow[]> {
  const purges: PurgeRow[] = []
  for await (const page of replica.scanPurges(0, plainCall)) purges.push(...page)
  return purges
}

function pass(source: ReplicaOfManyLives, target: ReplicaOfManyLives): Promise<unknown> {
  return syncReplica({ source: source.shown, target: target.shown, revsLimit, options, call: plainCall })
}

/** Two replicas that were equal before the source received more documents and purges. */
async function twoReplicas(): Promise<{ readonly source: ReplicaOfManyLives; readonly target: ReplicaOfManyLives }> {
  const source = new ReplicaOfManyLives(new MemoryShardReplica({ history: 's1' }))
  const target = new ReplicaOfManyLives(new MemoryShardReplica({ history: 't1' }))
  const purge = (id: string) =>
    source.current.purgeDocuments({ purges: [{ uuid: id, id, paths: [{ start: 1, ids: ['r'] }] }] }, plainCall)
  await store(source.current, 'a', 'b', 'c')
  await purge('b0')
  await pass(source, target)
  await store(source.current, 'd', 'e', 'f', 'g')
  await purge('c0')
  source.calls = target.calls = 0
  return { source, target }
}

async function callsOfAPass(end: 'source' | 'target'): Promise<number> {
  const ends = await twoReplicas()
  await pass(ends.source, ends.target)
  return ends[end].calls
}

describe('a pass during which a replica begins a new history', () => {
  it('stores no checkpoint in the next history of its target, whichever call that begins at', async () => {
    for (let call = 1; call <= await callsOfAPass('target'); call++) {
      const { source, target } = await twoReplicas()
      target.before = { call, run: () => rebuild(target, 't2') }
      await pass(source, target).catch(() => {})
      await pass(source, target)
      expect(await documentIds(target.current), `rebuilt before call ${call}`).to.deep.equal(
        await documentIds(source.current),
      )
      const purges = (await recordedPurges(target.current)).map(({ id }) => id)
      expect(purges.sort(), `rebuilt before call ${call}`).to.deep.equal(['b0', 'c0'])
    }
  })

  it('does not succeed with a part of the changes, and stores no trail in the next history of its source', async () => {
    for (let call = 1; call <= await callsOfAPass('source'); call++) {
      const { source, target } = await twoReplicas()
      source.before = { call, run: async () => {
        await rebuild(source, 's2')
        await store(source.current, 'z')
      } }
      const succeeded = await pass(source, target).then(() => true, () => false)
      if (succeeded) {
        expect(await documentIds(target.current), `rebuilt before call ${call}`).to.include.members(
          await documentIds(source.current),
        )
      } else {
        const translated = await source.current.translateCheckpoints([{ history: 't1', sequence: 1e9 }], plainCall)
        expect(translated, `trail after a rebuild before call ${call}`).to.equal(0)
      }
      await pass(source, target)
      expect(await documentIds(target.current)).to.include.members(await documentIds(source.current))
    }
  })

  it('fails while digests are compared, so that the next history does not count as compared', async () => {
    const { source, target } = await twoReplicas()
    await pass(source, target)
    target.calls = 0
    const compare = () =>
      compareDigests({ first: source.shown, second: target.shown, revsLimit, buckets: 4, call: plainCall })
    await compare()
    for (let call = 2, last = target.calls; call <= last; call++) {
      target.calls = 0
      target.before = { call, run: () => rebuild(target, `t${call}`) }
      const failure = await compare().then(() => null, (error: unknown) => error)
      expect(failure, `rebuilt before call ${call}`).to.have.property('code', 'other_history')
      target.before = undefined
      await pass(source, target)
    }
  })
})
