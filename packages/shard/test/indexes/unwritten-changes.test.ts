import { expect } from 'chai'
import type { DocumentChange } from '../../src/indexes/document-changes.ts'
import { UnwrittenChanges } from '../../src/indexes/unwritten-changes.ts'

function change(id: string, rows: number, activeBytes = 100): DocumentChange {
  return {
    id, before: { failed: false, rows: [] }, after: { failed: false, rows: [] }, error: undefined, digest: undefined,
    rows: Array.from({ length: rows }, (_, number) => ({ place: `${id} ${number}`, value: new Uint8Array(1) })),
    externalBytes: 0, activeBytes,
  }
}

/** Adds pages of 100 documents with one row each. Returns how many pages each of the first batches has. */
function pagesOfBatches(unwritten: UnwrittenChanges, batches: number): number[] {
  const pages: number[] = []
  let sequence = 0
  while (pages.length < batches) {
    let added = 0
    do {
      const from = sequence
      sequence += 100
      unwritten.add(Array.from({ length: 100 }, (_, at) => change(`${from + at}`, 1)), sequence)
      added++
    } while (!unwritten.isFull)
    const { documents, readSequence } = unwritten.take()
    expect(readSequence).to.equal(sequence)
    expect(documents.map(({ id }) => Number(id))).to.deep.equal(
      Array.from({ length: 100 * added }, (_, at) => sequence - 100 * added + at))
    expect(unwritten.isEmpty).to.equal(true)
    pages.push(added)
  }
  return pages
}

describe('unwritten changes of a first scan', () => {
  it('make a batch of the first page, and then batches of twice the size up to 1,024 entries', () => {
    expect(pagesOfBatches(new UnwrittenChanges(), 5)).to.deep.equal([1, 2, 4, 6, 6])
  })

  it('begin with small batches again after they were dropped', () => {
    const unwritten = new UnwrittenChanges()
    expect(pagesOfBatches(unwritten, 3)).to.deep.equal([1, 2, 4])
    unwritten.add([change('lost', 1)], 1000)
    unwritten.drop()
    expect(unwritten.isEmpty).to.equal(true)
    expect(pagesOfBatches(unwritten, 2)).to.deep.equal([1, 2])
  })

  it('are enough for a batch when they have 1 MiB, the texts of errors included', () => {
    const unwritten = new UnwrittenChanges()
    pagesOfBatches(unwritten, 5)
    unwritten.add([change('large', 1, 600_000)], 1)
    expect(unwritten.isFull).to.equal(false)
    unwritten.add([{ ...change('failed', 0), error: 'x'.repeat(500_000) }], 2)
    expect(unwritten.isFull).to.equal(true)
  })

  it('count documents without rows, so that their number is bounded', () => {
    const unwritten = new UnwrittenChanges()
    pagesOfBatches(unwritten, 5)
    for (let at = 0; at < 1023; at++) unwritten.add([change(`${at}`, 0, 0)], at)
    expect(unwritten.isFull).to.equal(false)
    unwritten.add([change('last', 0, 0)], 1023)
    expect(unwritten.isFull).to.equal(true)
  })
})
