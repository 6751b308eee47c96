import { expect } from 'chai'
import type { LogEntry } from '@sectional/core'
import { RaftLog } from '../../src/consensus/raft-log.ts'

describe('a page of the metadata log', () => {
  it('ends before its limit of entries or bytes is exceeded, but has at least one entry', () => {
    const log = new RaftLog()
    for (const [at, length] of [10, 30, 30, 100, 1].entries()) {
      log.append({ index: at + 1, term: 1, kind: 'command', payload: new Uint8Array(length) })
    }
    const indexes = (entries: readonly LogEntry[]): readonly number[] => entries.map(({ index }) => index)
    expect(indexes(log.page(1, 10, 1000))).to.deep.equal([1, 2, 3, 4, 5])
    expect(indexes(log.page(2, 2, 1000))).to.deep.equal([2, 3])
    expect(indexes(log.page(1, 10, 70))).to.deep.equal([1, 2, 3])
    expect(indexes(log.page(1, 10, 69))).to.deep.equal([1, 2])
    expect(indexes(log.page(4, 10, 50))).to.deep.equal([4])
  })
})
