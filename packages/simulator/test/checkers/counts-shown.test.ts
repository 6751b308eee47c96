import { expect } from 'chai'
import { countsShown } from '../../src/checkers/counts-shown.ts'
import type { FinalDatabase } from '../../src/checkers/final-state.ts'
import { Dice } from '../../src/world/dice.ts'
import type { World } from '../../src/world/world.ts'

/** Two documents of one partition, and a deleted one. */
const documents = new Map([['p:a', false], ['p:b', false], ['p:c', true]].map(([id, deleted]) =>
  [id, { leaves: [{ deleted }] }]))
const right = { '/db': { doc_count: 2, doc_del_count: 1 }, '/db/_all_docs?limit=0': { total_rows: 2 },
  '/db/_partition/p': { doc_count: 2 } }

function findings(shown: Readonly<Record<string, object>>, autoPurge = {}): Promise<readonly string[]> {
  const world = {
    nodes: [{ number: 1 }],
    send: async (_node: number, _method: string, path: string) => ({ status: 200, body: { ...right, ...shown }[path] }),
  } as unknown as World
  const database = { documents, record: { autoPurge, partitioned: true } } as unknown as FinalDatabase
  return countsShown(world, new Dice(1), new Map([['db', database]]))
}

describe('the checker of counts', () => {
  it('accepts the counts of the documents on the disks', async () => {
    expect(await findings({})).to.deep.equal([])
  })

  it('finds each wrong count', async () => {
    expect(await findings({ '/db': { doc_count: 3, doc_del_count: 0 } })).to.have.length(2)
    expect(await findings({ '/db/_all_docs?limit=0': { total_rows: 3 } })).to.have.length(1)
    expect(await findings({ '/db/_partition/p': { doc_count: 1 } })).to.have.length(1)
  })

  it('does not count tombstones where auto-purge may have removed some', async () => {
    const shown = { '/db': { doc_count: 2, doc_del_count: 0 } }
    expect(await findings(shown, { deleted_document_ttl: '1_day' })).to.deep.equal([])
  })
})
