import { expect } from 'chai'
import type { FoundDocument } from '@sectional/core'
import { MatchWindow } from '../../src/find/match-window.ts'

const value = new Uint8Array(0)
const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

async function* pages(size: number): AsyncGenerator<readonly FoundDocument[]> {
  for (let at = 0; at < ids.length; at += size) {
    yield ids.slice(at, at + size).map(id => ({ kind: 'found', range: 0, key: id, id, number: 0, value }))
  }
}

describe('the window of matches', () => {
  it('ends at the last match that it shows, wherever the pages end', async () => {
    for (let size = 1; size <= ids.length; size++) {
      for (let skip = 0; skip <= ids.length; skip++) {
        for (const limit of [1, 2, 3, null]) {
          const window = new MatchWindow(pages(size), { skip, limit })
          const shown: string[] = []
          for await (const page of window.pages()) shown.push(...page.map(({ id }) => id))
          const end = Math.min(ids.length, skip + (limit ?? Infinity))
          const name = `pages of ${size}, skip ${skip}, limit ${limit}`
          expect(shown, name).to.deep.equal(ids.slice(skip, end))
          if (shown.length > 0) expect(window.lastPosition?.id, name).to.equal(ids[end - 1])
        }
      }
    }
  })
})
