import { expect } from 'chai'
import { indexVerbs, mapVerbs, ReplicaError, shardVerbs, withoutHead } from '@sectional/core'
import type { IndexHead, IndexRow } from '@sectional/core'
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

describe('the head of an answer', () => {
  type Page = readonly (IndexHead | IndexRow)[]
  const position = { history: 'h', sequence: 1 }
  const head: IndexHead = { kind: 'head', position, readSequence: 1, version: 'v', rowCount: 2, rowsBefore: 0 }
  const row: IndexRow = { kind: 'row', range: 0, key: 'k', id: 'doc', number: 0, value: new Uint8Array(0) }
  async function* answer(pages: readonly Page[]): AsyncGenerator<Page> { yield* pages }

  async function read(...pages: readonly Page[]): Promise<unknown> {
    const found: unknown[] = []
    try {
      for await (const page of withoutHead(answer(pages), received => found.push(received))) found.push(page)
    } catch (error) {
      return error instanceof ReplicaError ? error.code : error
    }
    return found
  }

  it('is taken out of the first page that is not empty', async () => {
    expect(await read([head, row], [row, row])).to.deep.equal([head, [row], [row, row]])
    expect(await read([head], [row])).to.deep.equal([head, [row]])
    expect(await read([], [head], [])).to.deep.equal([head])
  })

  it('must come before the rows, once', async () => {
    const wrong = [[], [[row]], [[row, head]], [[head, row, head]], [[head, row], [head]], [[head], [row, head]]]
    for (const pages of wrong) expect(await read(...pages)).to.equal('protocol')
  })
})
