import { expect } from 'chai'
import { ReplacedAttempts } from '../../src/reading/replaced-attempts.ts'

describe('the attempts of replaced revisions', () => {
  it('are known for the last 32,768 revisions, and dropped some time after that', () => {
    const attempts = new ReplacedAttempts()
    const noteOthers = (from: number): void => {
      for (let index = from; index < from + 32_768; index++) attempts.note(1, `other-${index}`, '1-a', 9)
    }
    attempts.note(1, 'a', '1-a', 7)
    noteOthers(0)
    expect(attempts.of(1, 'a', '1-a')).to.equal(7)
    noteOthers(32_768)
    expect(attempts.of(1, 'a', '1-a')).to.equal(undefined)
  })

  it('belong to one document of one shard, and end with the same revision of an unknown attempt', () => {
    const attempts = new ReplacedAttempts()
    attempts.note(1, 'a', '1-a', 7)
    attempts.note(1, 'a', '1-a', 8)
    expect(attempts.of(1, 'a', '1-a')).to.equal(8)
    expect(attempts.of(2, 'a', '1-a')).to.equal(undefined)
    expect(attempts.of(1, 'b', '1-a')).to.equal(undefined)
    attempts.note(1, 'a', '1-a', undefined)
    expect(attempts.of(1, 'a', '1-a')).to.equal(undefined)
  })
})
