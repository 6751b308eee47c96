import { expect } from 'chai'
import { checkHistory } from '../../src/history/index.ts'
import type { NameRequest } from '../../src/history/index.ts'
import { Dice } from '../../src/world/dice.ts'

function request(does: NameRequest['does'], startMs: number, endMs: number, certain = true): NameRequest {
  return { name: 'db', label: `${does} at ${startMs}`, does, startMs, endMs, certain }
}

const neverAnswered = (does: NameRequest['does'], startMs: number): NameRequest =>
  request(does, startMs, Infinity, false)

function blamed(...names: readonly NameRequest[]): string[] {
  const found = checkHistory({ edits: [], reads: [], localWrites: [], localReads: [], names })
  return found.map(({ text }) => text.slice(0, text.indexOf(' cannot be')))
}

/** Draws requests of clients that overlap, to a store in which each takes effect at one moment. */
function validNames(seed: number): NameRequest[] {
  const dice = new Dice(seed)
  const names: NameRequest[] = []
  let exists = false
  for (let atMs = 100; atMs < 4000; atMs += dice.integer(1, 60)) {
    const startMs = atMs - dice.integer(0, 90)
    const endMs = atMs + dice.integer(0, 90)
    const changes = dice.chance(0.6)
    if (!changes) names.push(request(exists ? 'see' : 'miss', startMs, endMs))
    else if (names.filter(({ certain }) => !certain).length < 8 && dice.chance(0.3)) {
      names.push(neverAnswered(exists ? 'delete' : 'create', startMs))
      if (dice.chance(0.5)) exists = !exists
    } else {
      names.push(request(exists ? 'delete' : 'create', startMs, endMs))
      exists = !exists
    }
  }
  return names
}

describe('the history of the names of databases', () => {
  it('is valid when each request takes effect at one moment', () => {
    for (let seed = 1; seed <= 40; seed++) expect(blamed(...validNames(seed)), `seed ${seed}`).to.deep.equal([])
  })

  it('does not have two creations without a deletion between them', () => {
    expect(blamed(request('create', 0, 9), request('create', 10, 19))).to.deep.equal(['create at 10'])
    expect(blamed(request('create', 0, 9), request('delete', 15, 30), request('create', 10, 19))).to.deep.equal([])
    expect(blamed(request('create', 0, 9), neverAnswered('delete', 5), request('create', 50, 59))).to.deep.equal([])
    expect(blamed(request('create', 0, 9), neverAnswered('delete', 70), request('create', 50, 59)))
      .to.deep.equal(['create at 50'])
  })

  it('does not have a deletion of what does not exist, nor one that misses what exists', () => {
    expect(blamed(request('delete', 0, 9))).to.deep.equal(['delete at 0'])
    expect(blamed(request('create', 0, 9), request('delete', 10, 19), request('delete', 20, 29)))
      .to.deep.equal(['delete at 20'])
    expect(blamed(request('create', 0, 9), request('miss', 10, 19))).to.deep.equal(['miss at 10'])
    expect(blamed(request('create', 0, 12), request('miss', 10, 19))).to.deep.equal([])
  })

  it('uses an unknown outcome once only', () => {
    const before = [request('create', 0, 9), neverAnswered('delete', 10), request('create', 20, 29)]
    expect(blamed(...before, request('see', 30, 39))).to.deep.equal([])
    expect(blamed(...before, request('miss', 30, 39))).to.deep.equal(['miss at 30'])
  })

  it('judges each name by its own requests', () => {
    expect(blamed(request('create', 0, 9), { ...request('see', 10, 19), name: 'other' })).to.deep.equal(['see at 10'])
  })
})
