import { expect } from 'chai'
import { IndexPartCache, type LinkedEntry, NodePartCache } from '../../src/indexes/part-cache.ts'

describe('the cached parts of an index', () => {
  it('are those of the newest state, for its readers only', () => {
    const node = new NodePartCache(1000)
    const cache = new IndexPartCache(node, '1')
    const [first, second] = ['1', '2'].map(version => cache.ofVersion(version))
    first!.set(0, 'a', 'a of 1', 1)
    first!.set(0, 'b', 'b of 1', 1)
    second!.set(0, 'a', 'a of 2', 1)
    expect([first!.get(0, 'a'), second!.get(0, 'a')]).to.deep.equal(['a of 1', undefined])
    cache.changed('2', [{ level: 0, place: 'a' }])
    first!.set(0, 'a', 'late', 1)
    expect([first!.get(0, 'b'), second!.get(0, 'a'), second!.get(0, 'b')])
      .to.deep.equal([undefined, undefined, 'b of 1'])
    expect(new IndexPartCache(node, '2').ofVersion('2').get(0, 'b')).to.equal(undefined)
  })

  it('are found below an entry of a page as by their places', () => {
    const cache = new IndexPartCache(new NodePartCache(10), '1')
    const before = cache.ofVersion('1')
    const entry: LinkedEntry = { place: 'a', link: undefined }
    expect(before.below(0, entry)).to.equal(undefined)
    before.set(0, 'a', 'first', 3)
    expect(before.below(0, entry)).to.equal('first')
    before.set(0, 'a', 'second', 3)
    expect(before.below(0, entry)).to.equal('second')
    cache.changed('2', [{ level: 0, place: 'a' }])
    const after = cache.ofVersion('2')
    expect([before.below(0, entry), after.below(0, entry)]).to.deep.equal([undefined, undefined])
    after.set(0, 'a', 'third', 3)
    expect([before.below(0, entry), after.below(0, entry)]).to.deep.equal([undefined, 'third'])
    for (const place of ['b', 'c', 'd', 'e', 'f']) after.set(0, place, place, 3)
    expect([after.below(0, entry), entry.link]).to.deep.equal([undefined, undefined])
  })

  it('are kept when they were read below an entry', () => {
    const cache = new IndexPartCache(new NodePartCache(10), '1').ofVersion('1')
    const entry: LinkedEntry = { place: 'a', link: undefined }
    for (const key of ['a', 'b', 'c']) cache.set(0, key, key, 3)
    cache.below(0, entry)
    cache.set(0, 'd', 'd', 3)
    expect(['a', 'b', 'c', 'd'].map(key => cache.get(0, key))).to.deep.equal(['a', undefined, 'c', 'd'])
  })

  it('are forgotten by a reset, also by readers of the same version that began before it', () => {
    const cache = new IndexPartCache(new NodePartCache(1000), '1')
    const before = cache.ofVersion('1')
    before.set(0, 'a', 'old', 1)
    cache.reset('1')
    before.set(0, 'b', 'old', 1)
    const after = cache.ofVersion('1')
    expect([before.get(0, 'a'), after.get(0, 'a'), after.get(0, 'b')]).to.deep.equal([undefined, undefined, undefined])
    after.set(0, 'a', 'new', 1)
    expect(after.get(0, 'a')).to.equal('new')
  })

  it('take no more than the limit; those that were used last remain', () => {
    const cache = new IndexPartCache(new NodePartCache(10), '1').ofVersion('1')
    for (const key of ['a', 'b', 'c']) cache.set(0, key, key, 3)
    cache.get(0, 'a')
    cache.set(0, 'd', 'd', 3)
    expect(['a', 'b', 'c', 'd'].map(key => cache.get(0, key))).to.deep.equal(['a', undefined, 'c', 'd'])
    cache.set(0, 'large', 'large', 11)
    cache.set(0, 'd', 'larger', 9)
    expect(['a', 'c', 'd', 'large'].map(key => cache.get(0, key)))
      .to.deep.equal([undefined, undefined, 'larger', undefined])
  })

  it('are dropped when others are added all the time, however often all of them are read', () => {
    const cache = new IndexPartCache(new NodePartCache(1000), '1').ofVersion('1')
    const keys = Array.from({ length: 2000 }, (_, at) => String(at))
    for (const [at, key] of keys.entries()) {
      cache.set(0, key, key, 1)
      for (const known of keys.slice(0, at + 1)) cache.get(0, known)
    }
    expect(keys.filter(key => cache.get(0, key) !== undefined)).to.have.length(1000)
    expect(cache.get(0, keys.at(-1)!)).to.equal(keys.at(-1))
  })

  it('take what is offered only where there is room', () => {
    const parts = new IndexPartCache(new NodePartCache(10), '1')
    const cache = parts.ofVersion('1')
    cache.set(0, 'a', 'a', 3)
    const offered = { b: 8, c: 7, d: 1 }
    for (const [place, bytes] of Object.entries(offered)) parts.offer(0, place, bytes, () => [place, bytes])
    expect(['a', 'b', 'c', 'd'].map(key => cache.get(0, key))).to.deep.equal(['a', undefined, 'c', undefined])
  })
})
