import { expect } from 'chai'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { KnownAttempts } from '../../src/reading/known-attempts.ts'

describe('the known attempts', () => {
  it('are those of the last 32,768 revisions, and others are dropped some time after that', () => {
    const attempts = new KnownAttempts()
    const noteOthers = (from: number): void => {
      for (let index = from; index < from + 32_768; index++) attempts.note(1, `other-${index}`, '1-a', 9)
    }
    attempts.note(1, 'a', '1-a', 7)
    noteOthers(0)
    expect(attempts.of(1, 'a', '1-a')).to.equal(7)
    noteOthers(32_768)
    expect(attempts.of(1, 'a', '1-a')).to.equal(undefined)
  })

  it('belong to one document of one shard, and are forgotten on request', () => {
    const attempts = new KnownAttempts()
    attempts.note(1, 'a', '1-a', 7)
    attempts.note(1, 'a', '1-a', 8)
    expect(attempts.of(1, 'a', '1-a')).to.equal(8)
    expect(attempts.of(2, 'a', '1-a')).to.equal(undefined)
    expect(attempts.of(1, 'b', '1-a')).to.equal(undefined)
    attempts.forget(1, 'a', '1-a')
    expect(attempts.of(1, 'a', '1-a')).to.equal(undefined)
  })

  it('need little memory, however long the ids of the documents are', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const attempts = new KnownAttempts()
    const longId = (index: number): string => `${index}`.padStart(64 * 1024, 'x')
    collect()
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < 1000; index++) attempts.note(1, longId(index), '1-a', index)
    collect()
    expect(process.memoryUsage().heapUsed - before).to.be.below(1000 * 1024)
    expect(attempts.of(1, longId(999), '1-a')).to.equal(999)
    expect(attempts.of(1, longId(1000), '1-a')).to.equal(undefined)
  })
})
