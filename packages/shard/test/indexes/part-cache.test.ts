import { expect } from 'chai'
import { IndexPartCache, NodePartCache } from '../../src/indexes/part-cache.ts'

describe('the cached parts of an index', () => {
  it('are those of the newest state, for its readers only', () => {
    const node = new NodePartCache()
    const cache = new IndexPartCache(node, '1')
    const [first, second] = ['1', '2'].map(version => cache.ofVersion(version))
    first!.set('a', 'a of 1', 1)
    first!.set('b', 'b of 1', 1)
    second!.set('a', 'a of 2', 1)
    expect([first!.get('a'), second!.get('a')]).to.deep.equal(['a of 1', undefined])
    cache.changed('2', ['a'])
    first!.set('a', 'late', 1)
    expect([first!.get('b'), second!.get('a'), second!.get('b')]).to.deep.equal([undefined, undefined, 'b of 1'])
    expect(new IndexPartCache(node, '2').ofVersion('2').get('b')).to.equal(undefined)
  })

  it('are forgotten by a reset, also by readers of the same version that began before it', () => {
    const cache = new IndexPartCache(new NodePartCache(), '1')
    const before = cache.ofVersion('1')
    before.set('a', 'old', 1)
    cache.reset('1')
    before.set('b', 'old', 1)
    const after = cache.ofVersion('1')
    expect([before.get('a'), after.get('a'), after.get('b')]).to.deep.equal([undefined, undefined, undefined])
    after.set('a', 'new', 1)
    expect(after.get('a')).to.equal('new')
  })

  it('take no more than the limit; those that were used last remain', () => {
    const cache = new IndexPartCache(new NodePartCache(10), '1').ofVersion('1')
    for (const key of ['a', 'b', 'c']) cache.set(key, key, 3)
    cache.get('a')
    cache.set('d', 'd', 3)
    expect(['a', 'b', 'c', 'd'].map(key => cache.get(key))).to.deep.equal(['a', undefined, 'c', 'd'])
    cache.set('large', 'large', 11)
    cache.set('d', 'larger', 9)
    expect(['a', 'c', 'd', 'large'].map(key => cache.get(key)))
      .to.deep.equal([undefined, undefined, 'larger', undefined])
  })
})
