import type { ClusterState } from '@sectional/server'
import { expect } from 'chai'
import { placementFindings } from '../../src/checkers/placement-rules.ts'

/** A state with one shard. A name with `?` is a replica that is being filled. */
function state(...replicas: readonly string[]): ClusterState {
  const shard = {
    range: { begin: 0, end: 0xffff_ffff },
    replicas: replicas.map(name => ({ node: name.replace('?', ''), filling: name.endsWith('?') })),
  }
  const database = { name: 'db', incarnation: 'i', shards: [shard] }
  return { databases: new Map([['db', database]]) } as unknown as ClusterState
}

describe('the rules of placement', () => {
  it('allow a new replica that is filled first, and one that has no source', () => {
    expect(placementFindings(state('a', 'b'), state('a', 'b', 'c?'))).to.deep.equal([])
    expect(placementFindings(state('a', 'c?'), state('a', 'c'))).to.deep.equal([])
    expect(placementFindings(state('a'), state('b'))).to.deep.equal([])
  })

  it('refuse a new replica that counts at once', () => {
    expect(placementFindings(state('a', 'b'), state('a', 'b', 'c'))).to.have.length(1)
  })

  it('refuse a shard in which no replica counts', () => {
    expect(placementFindings(state('a', 'b?'), state('a?', 'b?'))).to.have.length(1)
  })
})
