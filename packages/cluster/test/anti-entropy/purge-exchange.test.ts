import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import {
  purgesOf, ReplicaError, type DocumentRevision, type Purge, type PurgeRow, type RevisionPath, type ShardReplica,
} from '@sectional/core'
import { expect } from 'chai'
import fc from 'fast-check'
import { compareDigests } from '../../src/anti-entropy/digest-compare.ts'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import { bytes, edit, plainCall } from '../replica-world.ts'

const options = { batchDocumentsMax: 3, batchBytesMax: 40, checkpointRows: 4 }
const revsLimit = 1000

function pass(source: ShardReplica, target: ShardReplica): Promise<unknown> {
  return syncReplica({ source, target, revsLimit, options, call: plainCall })
}

async function store(replica: ShardReplica, id: string, ids: readonly string[]): Promise<void> {
  await replica.storeRevisions(
    { revisions: [{ id, path: { start: ids.length, ids }, deleted: false, body: bytes({}) }], revsLimit }, plainCall,
  )
}

async function leavesOf(replica: ShardReplica, id: string): Promise<string[]> {
  return (await replica.openDocument({ id, body: false, tree: false }, plainCall))?.leaves.map(leaf =>
    leaf.revision) ?? []
}

function replicas(count: number): MemoryShardReplica[] {
  return Array.from({ length: count }, (_, index) => new MemoryShardReplica({ history: `h${index}` }))
}

const all = { start: 2, ids: ['b', 'a'] }

describe('purges between replicas', () => {
  it('reach a replica that was away before its documents come back', async () => {
    const [here, away] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
    for (const replica of [here, away]) await store(replica, 'doc', ['b', 'a'])
    await here.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [all] }] }, plainCall)
    await pass(away, here)
    expect([await leavesOf(here, 'doc'), await leavesOf(away, 'doc')]).to.deep.equal([[], []])
  })

  it('reach a replica that lagged when they were made, whichever side begins', async () => {
    for (const order of [0, 1]) {
      const [here, away] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
      await store(away, 'doc', ['a'])
      await store(here, 'doc', ['b', 'a'])
      await here.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [all] }] }, plainCall)
      await (order === 0 ? pass(away, here) : pass(here, away))
      expect([await leavesOf(here, 'doc'), await leavesOf(away, 'doc')]).to.deep.equal([[], []])
    }
  })

  it('prevent a comparison of digests from copying purged revisions', async () => {
    const [first, second] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
    for (const replica of [first, second]) await store(replica, 'doc', ['b', 'a'])
    await first.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [all] }] }, plainCall)
    await compareDigests({ first, second, revsLimit, buckets: 4, call: plainCall })
    expect([await leavesOf(first, 'doc'), await leavesOf(second, 'doc')]).to.deep.equal([[], []])
  })

  it('keep a document that was written again afterwards', async () => {
    const [first, second, third] = replicas(3) as [MemoryShardReplica, MemoryShardReplica, MemoryShardReplica]
    const reply = await first.updateDocuments({ edits: [edit('doc', null, { n: 1 })], revsLimit }, plainCall)
    const outcome = reply.kind === 'decided' ? reply.outcomes[0] : undefined
    if (outcome?.kind !== 'updated') throw new Error('not written')
    const { path } = outcome
    await pass(first, second)
    await pass(first, third)
    await first.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [path] }] }, plainCall)
    await first.updateDocuments({ edits: [edit('doc', null, { n: 1 })], revsLimit }, plainCall)
    for (const target of [second, third]) await pass(first, target)
    for (const replica of [first, second, third]) expect(await leavesOf(replica, 'doc')).to.have.length(1)
  })

  it('are copied one after the other, however often replicas exchange them', async () => {
    const [first, second] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
    for (const uuid of ['u', 'v', 'w']) {
      await first.purgeDocuments({ purges: [{ uuid, id: uuid, paths: [all] }] }, plainCall)
      await pass(first, second)
    }
    const copied: string[] = []
    for await (const page of second.scanPurges(0, plainCall)) copied.push(...page.map(purge => purge.uuid))
    expect(copied).to.deep.equal(['u', 'v', 'w'])
  })

  it('move a checkpoint past deleted records', async () => {
    const [first, second] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
    await first.purgeDocuments({ purges: [{ uuid: 'u', id: 'doc', paths: [all] }] }, plainCall)
    await first.trimPurges(1, plainCall)
    await pass(first, second)
    expect((await second.upkeep.replicaInfo(plainCall)).purgesSeen).to.deep.equal({ h0: 1 })
  })

  it('go on behind those that were copied when an exchange of many was interrupted', async () => {
    const [first, second] = replicas(2) as [MemoryShardReplica, MemoryShardReplica]
    const uuids = Array.from({ length: 250 }, (_, index) => `u${String(index).padStart(3, '0')}`)
    for (const uuid of uuids) {
      await store(second, uuid, ['b', 'a'])
      await first.purgeDocuments({ purges: [{ uuid, id: uuid, paths: [all] }] }, plainCall)
    }
    const scan = first.scanPurges.bind(first)
    // The pages of a replica on disk have more purges than one call copies.
    first.scanPurges = async function* (since, call) {
      const rows: PurgeRow[] = []
      for await (const page of scan(since, call)) rows.push(...page)
      for (let at = 0; at < rows.length; at += 128) yield rows.slice(at, at + 128)
    }
    const apply = second.purgeDocuments.bind(second)
    let calls = 0
    second.purgeDocuments = async (request, call) => {
      if (++calls > 1) throw new ReplicaError('unreachable', 'the link broke')
      return apply(request, call)
    }
    expect(await pass(first, second).catch((error: unknown) => error)).to.be.instanceOf(ReplicaError)
    expect((await second.upkeep.replicaInfo(plainCall)).documentCount, 'some purges have arrived').to.be.within(1, 249)
    second.purgeDocuments = apply
    await pass(first, second)
    const left = await Promise.all(uuids.map(uuid => leavesOf(second, uuid)))
    expect(left.flat()).to.deep.equal([])
  })

  const operation = fc.record({
    kind: fc.constantFrom('edit', 'edit', 'edit', 'purge', 'purge', 'sync', 'deliver'), id: fc.constantFrom('x', 'y'),
    at: fc.nat(2), other: fc.nat(2), reached: fc.subarray([0, 1, 2], { minLength: 1 }), value: fc.nat(2),
  })

  it('are never undone, whichever replicas are away and whichever messages are late', async () => {
    await fc.assert(fc.asyncProperty(fc.array(operation, { maxLength: 40, size: 'max' }), async operations => {
      const world = new PurgeWorld()
      for (const step of operations) {
        if (step.kind === 'edit') await world.edit(step.id, step.at, step.reached, step.value)
        else if (step.kind === 'purge') await world.purge(step.id, step.reached)
        else if (step.kind === 'sync') await world.sync(step.at, step.other)
        else await world.deliver(step.other)
      }
      await world.settle()
      for (const id of ['x', 'y']) {
        const [first, ...others] = await Promise.all(world.replicas.map(replica => leavesOf(replica, id)))
        for (const other of others) expect(other).to.deep.equal(first)
        for (const leaf of first!) expect(world.isPurgedForGood(id, leaf), `${id} ${leaf} came back`).to.equal(false)
      }
    }), { numRuns: 300 })
  })
})

/**
 * Three replicas, with edits and purges that reach some of them, messages that arrive late, and a model of the
 * revisions that may exist.
 */
class PurgeWorld {
  readonly replicas = replicas(3)
  readonly #late: { readonly target: number; readonly revision: DocumentRevision }[] = []
  readonly #purges: Purge[] = []
  /** Revisions that were written after their newest purge by a client that knew of it. They may exist. */
  readonly #rewritten = new Map<string, ReadonlySet<string>>()

  async edit(id: string, at: number, reached: readonly number[], value: number): Promise<void> {
    const decider = this.replicas[at]!
    const parent = (await leavesOf(decider, id))[0] ?? null
    const made = edit(id, parent, { value })
    const reply = await decider.updateDocuments({ edits: [made], revsLimit }, plainCall)
    const outcome = reply.kind === 'decided' ? reply.outcomes[0]! : undefined
    if (outcome?.kind !== 'updated') return
    const name = `${outcome.path.start}-${outcome.path.ids[0]}`
    this.#rewritten.set(
      `${id} ${name}`, new Set([...this.#rewritten.get(`${id} ${name}`) ?? [], ...outcome.purges ?? []]),
    )
    const revision = {
      id, path: outcome.path, deleted: false, body: made.body, ...(outcome.purges && { purges: outcome.purges }),
    }
    for (const target of [0, 1, 2]) {
      if (target === at) continue
      if (reached.includes(target)) {
        await this.replicas[target]!.storeRevisions({ revisions: [revision], revsLimit }, plainCall)
      } else this.#late.push({ target, revision })
    }
  }

  /** Purges as the coordinator does: the winner as a majority knows it, applied on the reached replicas. */
  async purge(id: string, reached: readonly number[]): Promise<void> {
    const trees = await Promise.all(this.replicas.slice(0, 2)
      .map(async replica => (await replica.openDocument({ id, body: false, tree: true }, plainCall))?.tree ?? []))
    const inner = new Set(trees.flat().flatMap(({ path }) => path.ids.slice(1)))
    const paths: RevisionPath[] = trees.flat().map(({ path }) => path).filter(path => !inner.has(path.ids[0]!))
      .slice(0, 1)
    if (paths.length === 0) return
    const purge: Purge = { uuid: `u${this.#purges.length}`, id, paths }
    this.#purges.push(purge)
    for (const target of reached) await this.replicas[target]!.purgeDocuments({ purges: [purge] }, plainCall)
  }

  async sync(at: number, other: number): Promise<void> {
    if (at !== other) await pass(this.replicas[at]!, this.replicas[other]!)
  }

  async deliver(index: number): Promise<void> {
    const [message] = this.#late.splice(index % Math.max(1, this.#late.length), 1)
    if (message !== undefined) {
      await this.replicas[message.target]!.storeRevisions({ revisions: [message.revision], revsLimit }, plainCall)
    }
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 3; round++) {
      for (const source of [0, 1, 2]) for (const target of [0, 1, 2]) await this.sync(source, target)
      for (let count = this.#late.length; count > 0; count--) await this.deliver(0)
    }
    for (const [first, second] of [[0, 1], [1, 2], [0, 2]] as const) {
      await compareDigests({
        first: this.replicas[first]!, second: this.replicas[second]!, revsLimit, buckets: 1, call: plainCall,
      })
    }
  }

  /**
   * Returns true when a purge that some replica applied names the revision, and no replica that had applied it made the
   * revision again.
   */
  isPurgedForGood(id: string, revision: string): boolean {
    const named = this.#purges.filter(purge =>
      purge.id === id && purge.paths.some(({ start, ids }) => `${start}-${ids[0]}` === revision))
    const known = this.#rewritten.get(`${id} ${revision}`)
    return purgesOf(named, revision).some(uuid => !known?.has(uuid))
  }
}
