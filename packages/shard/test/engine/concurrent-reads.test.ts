import type { ReplicaError, ShardId } from '@sectional/core'
import type { Store } from '@sectional/runtime'
import { expect } from 'chai'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { bodyChunkBytes } from '../../src/records/body-record.ts'
import { collect, context, edit, shardA, shardRuntime } from '../shard-world.ts'

/** More documents than the engine reads synchronously. */
const ids = ['a', 'b', 'c', 'd', 'e', 'f']

describe('reads while documents are purged', () => {
  let host: ShardHost
  let replica: ShardEngine
  let store: Store
  let damaged: ShardId[]
  beforeEach(async () => {
    damaged = []
    host = await ShardHost.open(shardRuntime())
    host.onDamage({ damagedReplica: shard => { damaged.push(shard) }, damagedBlob: () => {} })
    replica = await host.create(shardA)
    store = replica.records.store
    await replica.updateDocuments({ edits: ids.map(id => edit(id, null, { id })), revsLimit: 10 }, context)
  })
  afterEach(() => host.close())

  async function purge(id: string): Promise<void> {
    const { leaves } = (await replica.openDocument({ id, body: false, tree: false }, context))!
    await replica.purgeDocuments(
      { purges: [{ uuid: `purge of ${id}`, id, paths: [{ start: 1, ids: [leaves[0]!.revision.slice(2)] }] }] }, context,
    )
  }

  /** Purges the document, and makes the next read of it return the record from before the purge. */
  async function purgedAfterTheRead(id: string): Promise<void> {
    const { getSync, getMany } = store
    const wanted = replica.records.keys.document(id)
    const before = store.getSync(wanted)
    await purge(id)
    let stale = true
    const read = (key: string, now: Uint8Array | undefined): Uint8Array | undefined => {
      if (!stale || key !== wanted) return now
      stale = false
      return before
    }
    store.getSync = key => read(key, getSync.call(store, key))
    store.getMany = async keys => (await getMany.call(store, keys)).map((now, index) => read(keys[index]!, now))
  }

  /** Makes the purge durable after bodies were read, or just before. */
  function purgedWhileBodiesAreRead(id: string, when: 'before' | 'after'): void {
    const { getMany } = store
    const body = replica.records.keys.kind('b').gte
    store.getMany = async keys => {
      if (!keys[0]!.startsWith(body)) return getMany.call(store, keys)
      store.getMany = getMany
      if (when === 'before') await purge(id)
      const found = await getMany.call(store, keys)
      if (when === 'after') await purge(id)
      return found
    }
  }

  it('do not report a body that was just purged as damaged', async () => {
    await purgedAfterTheRead('a')
    expect(await replica.openDocument({ id: 'a', body: true, tree: true }, context)).to.equal(null)
    await purgedAfterTheRead('b')
    const opened = await replica.openRevisions(
      ids.map(id => ({ id, revisions: 'leaves' as const, latest: false })), context,
    )
    expect(opened.map(revisions => revisions.length)).to.deep.equal([0, 0, 1, 1, 1, 1])
    expect(damaged).to.deep.equal([])
  })

  it('do not report a large body of which only the first part was read before the purge', async () => {
    const large = 'x'.repeat(3 * bodyChunkBytes)
    await replica.updateDocuments({ edits: [edit('large', null, { large })], revsLimit: 10 }, context)
    purgedWhileBodiesAreRead('large', 'before')
    expect(await replica.openDocument({ id: 'large', body: true, tree: false }, context)).to.equal(null)
    expect(damaged).to.deep.equal([])
  })

  it('list a document without its body when the body was just purged', async () => {
    purgedWhileBodiesAreRead('c', 'before')
    const rows = await collect(replica.scanDocuments(
      { start: undefined, end: undefined, descending: false, body: true, leaves: false }, context,
    ))
    expect(rows.map(({ id, body }) => `${id} ${body === undefined ? 'gone' : Buffer.from(body)}`)).to.deep.equal(
      ids.map(id => id === 'c' ? 'c gone' : `${id} {"id":"${id}"}`),
    )
    expect(damaged).to.deep.equal([])
  })

  it('never return a revision together with the purge that removes it', async () => {
    await purge('f')
    purgedWhileBodiesAreRead('a', 'after')
    const opened = await replica.openRevisions(
      ids.map(id => ({ id, revisions: 'leaves' as const, latest: false })), context,
    )
    expect(opened.flat()
      .map(each => each.kind === 'found' && `${each.revision.id} ${each.revision.purges}`)).to.deep.equal(
      ['b', 'c', 'd', 'e'].map(id => `${id} undefined`),
    )
  })

  it('report a missing body that its document still names as damage', async () => {
    await store.write(batch => batch.delete(replica.records.keys.body(1)))
    for (const read of [
      () => replica.openDocument({ id: 'a', body: true, tree: false }, context),
      () => replica.openRevisions(ids.map(id => ({ id, revisions: 'leaves' as const, latest: false })), context),
      () => collect(replica.scanDocuments(
        { start: undefined, end: undefined, descending: false, body: true, leaves: false }, context,
      )),
    ]) {
      damaged = []
      expect(await read().then(() => 'nothing', (error: ReplicaError) => error.code)).to.equal('storage')
      expect(damaged).to.deep.equal([shardA])
    }
  })
})
