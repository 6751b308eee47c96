import { expect } from 'chai'
import { indexVerbs, mapVerbs, shardVerbs } from '@sectional/core'
import { MemoryIndexReplica } from '@sectional/core/index-replica-memory'

describe('the contract of indexes', () => {
  const names = Object.keys(indexVerbs)

  it('has at most 20 verbs, and shares no name with a verb of a replica', () => {
    expect(names.length).to.be.within(1, 20)
    const replicaVerbs = [...mapVerbs<typeof shardVerbs, null>(shardVerbs, {
      call: () => null, pages: () => null, upload: () => null, download: () => null,
    }).keys()]
    expect(replicaVerbs).to.include('scanChanges')
    for (const name of names) expect(replicaVerbs).not.to.include(name)
  })

  it('is implemented in memory', () => {
    expect(Object.getOwnPropertyNames(MemoryIndexReplica.prototype)).to.include.members(names)
  })

  it('lets only a build that has time wait', () => {
    const build = { definition: { kind: '', map: '', reduce: null, options: {} }, through: 0 }
    expect(indexVerbs.buildIndex.waits?.({ ...build, waitMs: 0 })).to.equal(false)
    expect(indexVerbs.buildIndex.waits?.({ ...build, waitMs: 1 })).to.equal(true)
  })
})
