import { expect } from 'chai'
import fc from 'fast-check'
import {
  compareLeaves, compareRevisions, RevisionTree, treeRevisionsMax, type RevisionPath,
} from '../../src/index.ts'
import { NaiveRevisionTree, type StoredEdit } from './naive-revision-tree.ts'

function merged(...edits: (readonly [start: number, ids: string, deleted?: boolean])[]): RevisionTree {
  let tree = RevisionTree.empty
  for (const [start, ids, deleted = false] of edits) {
    tree = tree.merge({ start, ids: ids.split(' ') }, { deleted, bodyKey: null }).tree
  }
  return tree
}

const leaf = { deleted: false, bodyKey: 7 }
const hex = (letter: string): string => letter.repeat(32)

/**
 * Histories with correct hashes, each of which covers its parent and so identifies it. An edit extends a known revision
 * or begins a new root, and is sent with all or some of its ancestors.
 */
const step = fc.record({
  parent: fc.nat(20), letter: fc.constantFrom('a', 'b', 'c'), deleted: fc.boolean(),
  sent: fc.integer({ min: 1, max: 6 }),
})
const histories: fc.Arbitrary<StoredEdit[]> = fc.array(step, { minLength: 1, maxLength: 14, size: 'max' })
  .map(steps => {
    const whole: RevisionPath[] = []
    const edits = new Map<string, StoredEdit>()
    for (const { parent, letter, deleted, sent } of steps) {
      const from = whole[parent]
      const path = from === undefined
        ? { start: 1, ids: [letter] }
        : { start: from.start + 1, ids: [from.ids[0] + letter, ...from.ids] }
      whole.push(path)
      const key = `${path.start}-${path.ids[0]}`
      if (!edits.has(key)) edits.set(key, { path: { start: path.start, ids: path.ids.slice(0, sent) }, deleted })
    }
    return [...edits.values()]
  })

const shuffled = histories.chain(edits => fc.record({
  edits: fc.constant(edits),
  other: fc.shuffledSubarray(edits, { minLength: edits.length }),
  again: fc.subarray(edits),
}))

function mergeAll(edits: readonly StoredEdit[]): RevisionTree {
  let tree = RevisionTree.empty
  for (const edit of edits) tree = tree.merge(edit.path, { deleted: edit.deleted, bodyKey: null }).tree
  return tree
}

describe('revision tree', () => {
  it('is the same for the same edits in any order, however often', () => {
    fc.assert(fc.property(shuffled, ({ edits, other, again }) => {
      const tree = mergeAll(edits)
      expect(mergeAll([...other, ...again]).nodes()).to.deep.equal(tree.nodes())
      expect(Buffer.compare(mergeAll(other).encode(), tree.encode())).to.equal(0)
    }), { numRuns: 500 })
  })

  it('is the same object when nothing new is merged', () => {
    fc.assert(fc.property(shuffled, ({ edits, again }) => {
      const tree = mergeAll(edits)
      for (const edit of again) {
        expect(tree.merge(edit.path, { deleted: edit.deleted, bodyKey: 9 })).to.deep.equal({ tree, result: 'internal' })
      }
    }))
  })

  it('gets the body of an ancestor that has none, and keeps other bodies', () => {
    const tree = merged([3, 'c b a'], [2, 'd a']).merge({ start: 4, ids: ['e', 'c'] }, leaf).tree
    const completed = tree.withBody({ start: 2, ids: ['b'] }, 8)
    expect(completed?.node('2-b')).to.deep.include({ bodyKey: 8, parents: ['a'] })
    expect(completed?.bodyKeys()).to.deep.equal([8, 7])
    expect(completed?.leaves()).to.deep.equal(tree.leaves())
    expect(completed?.withBody({ start: 2, ids: ['b'] }, 9)).to.equal(null)
    expect(completed?.withBody({ start: 4, ids: ['e', 'c'] }, 9)).to.equal(null)
    expect(completed?.withBody({ start: 2, ids: ['x'] }, 9)).to.equal(null)
    const chain = merged([3, 'c b a']).withBody({ start: 2, ids: ['b', 'a'] }, 8)
    expect(chain?.node('2-b')).to.deep.include({ bodyKey: 8 })
  })

  it('has the same leaves and winner as the naive implementation', () => {
    fc.assert(fc.property(histories, edits => {
      const naive = new NaiveRevisionTree()
      for (const edit of edits) naive.add(edit)
      const tree = mergeAll(edits)
      expect(tree.leaves()).to.deep.equal(naive.leaves())
      expect(tree.leaves()).to.deep.equal(tree.leaves().toSorted(compareLeaves))
      expect(new Set(tree.nodes().map(node => `${node.generation}-${node.hash}`))).to.deep.equal(naive.revisions())
    }), { numRuns: 500 })
  })

  it('has the same leaves as the naive implementation for long paths, in any order of edits', () => {
    const expand = (id: string): string[] => Array.from({ length: 8 }, (_, index) => `${id}${7 - index}`)
    const stretch = ({ path: { start, ids }, deleted }: StoredEdit): StoredEdit => (
      { path: { start: start * 8, ids: ids.flatMap(expand) }, deleted })
    fc.assert(fc.property(shuffled, ({ edits, other, again }) => {
      const naive = new NaiveRevisionTree()
      for (const edit of edits) naive.add(stretch(edit))
      const tree = mergeAll(edits.map(stretch))
      expect(tree.leaves()).to.deep.equal(naive.leaves())
      expect(RevisionTree.decode(tree.encode()).leaves()).to.deep.equal(naive.leaves())
      expect(mergeAll([...other, ...again].map(stretch)).nodes()).to.deep.equal(tree.nodes())
    }), { numRuns: 300 })
  })

  it('merges a hundred branches with long histories in a short time', function () {
    this.timeout(60_000)
    const before = process.cpuUsage()
    let long = RevisionTree.empty
    for (let branch = 0; branch < 100; branch++) {
      const ids = Array.from({ length: 1000 }, (_, index) => (branch * 1000 + index).toString(16).padStart(32, '0'))
      long = long.merge({ start: 1000, ids }, leaf).tree
    }
    expect(long.leafNodes()).to.have.length(100)
    // This took minutes when each merge sorted the whole tree and searched it for leaves.
    expect(process.cpuUsage(before).user).to.be.below(2_000_000)
  })

  it('is the same after encoding and decoding, with body keys and hashes of any text', () => {
    const bodyKeys = fc.array(fc.option(fc.maxSafeNat()), { minLength: 14, maxLength: 14 })
    const renames = fc.constantFrom(
      (id: string) => id,
      (id: string) => Buffer.from(id.padEnd(16).slice(-16)).toString('hex'),
      (id: string) => `ü${id}`,
      (id: string) => id === 'a' ? '' : id,
    )
    fc.assert(fc.property(histories, bodyKeys, renames, (edits, keys, rename) => {
      let tree = RevisionTree.empty
      edits.forEach((edit, i) => {
        const path = { start: edit.path.start, ids: edit.path.ids.map(rename) }
        tree = tree.merge(path, { deleted: edit.deleted, bodyKey: keys[i] ?? null }).tree
        const decoded = RevisionTree.decode(tree.encode())
        expect(decoded.leaves()).to.deep.equal(tree.leaves())
        expect(decoded.nodes()).to.deep.equal(tree.nodes())
      })
    }), { numRuns: 200 })
  })

  it('behaves the same after decoding: reads, merges and stemming', () => {
    fc.assert(fc.property(histories, histories, fc.integer({ min: 1, max: 4 }), (edits, later, limit) => {
      let [tree, copy] = [RevisionTree.empty, RevisionTree.empty]
      for (const [i, { path, deleted }] of [...edits, ...later].entries()) {
        const leaf = { deleted, bodyKey: i }
        const [merged, copied] = [tree.merge(path, leaf), RevisionTree.decode(copy.encode()).merge(path, leaf)]
        expect(copied.result).to.equal(merged.result)
        ;[tree, copy] = i % 3 === 0 ? [merged.tree.stem(limit), copied.tree.stem(limit)] : [merged.tree, copied.tree]
        expect(Buffer.compare(copy.encode(), tree.encode())).to.equal(0)
      }
      const decoded = RevisionTree.decode(copy.encode())
      expect(decoded.branches()).to.deep.equal(tree.branches())
      expect(decoded.releaseInnerBodies().released).to.deep.equal(tree.releaseInnerBodies().released)
      for (const revision of [...tree.nodes().map(node => `${node.generation}-${node.hash}`), '0-a', '1-z', '99-a']) {
        const fresh = RevisionTree.decode(copy.encode())
        expect([
          fresh.has(revision), fresh.path(revision), fresh.latest(revision), fresh.isLeaf(revision),
          fresh.node(revision), fresh.decideEdit({ parent: revision, deleted: false }),
        ])
          .to.deep.equal([
            tree.has(revision), tree.path(revision), tree.latest(revision), tree.isLeaf(revision), tree.node(revision),
            tree.decideEdit({ parent: revision, deleted: false }),
          ])
      }
    }), { numRuns: 300 })
  })

  it('takes 22 bytes for a first revision with a small body key', () => {
    const { tree } = RevisionTree.empty.merge({ start: 1, ids: [hex('a')] }, { deleted: false, bodyKey: 1000 })
    expect(tree.encode()).to.have.length(22)
  })

  it('refuses bytes that are not a tree', () => {
    for (const bytes of [[], [9], [1], [1, 1], [1, 1, 1, 0, 5], [2, 3, 1]]) {
      expect(() => RevisionTree.decode(Uint8Array.from(bytes)).nodes()).to.throw(RangeError)
    }
  })

  it('reports whether a merge extended a leaf, made a conflict or added nothing new', () => {
    const tree = merged([2, 'b a'])
    expect(RevisionTree.empty.merge({ start: 2, ids: ['b', 'a'] }, leaf).result).to.equal('new-leaf')
    expect(tree.merge({ start: 3, ids: ['c', 'b', 'a'] }, leaf).result).to.equal('new-leaf')
    expect(tree.merge({ start: 5, ids: ['e', 'd', 'c', 'b'] }, leaf).result).to.equal('new-leaf')
    expect(tree.merge({ start: 2, ids: ['x', 'a'] }, leaf).result).to.equal('new-branch')
    expect(tree.merge({ start: 7, ids: ['g'] }, leaf).result).to.equal('new-branch')
    expect(tree.merge({ start: 1, ids: ['a'] }, leaf).result).to.equal('internal')
    expect(tree.merge({ start: 2, ids: ['b'] }, leaf).result).to.equal('internal')
  })

  it('joins at the deepest shared revision and connects a root whose ancestors become known', () => {
    expect(merged([2, 'b a'], [4, 'd c b']).branches().map(branch => branch.path)).to.deep.equal(
      [{ start: 4, ids: ['d', 'c', 'b', 'a'] }],
    )
    expect(merged([4, 'd'], [4, 'd c b'], [2, 'b a']).path('4-d')).to.deep.equal({
      start: 4, ids: ['d', 'c', 'b', 'a'],
    })
    expect(merged([4, 'd'], [1, 'a']).branches().map(branch => branch.path.ids)).to.deep.equal([['d'], ['a']])
  })

  it('follows the greatest parent when ids contradict each other, in any order', () => {
    const one = merged([2, 'b a'], [2, 'b x'])
    const two = merged([2, 'b x'], [2, 'b a'])
    expect(one.nodes()).to.deep.equal(two.nodes())
    expect(one.path('2-b')).to.deep.equal({ start: 2, ids: ['b', 'x'] })
    expect(one.leaves()).to.deep.equal([{ revision: '2-b', deleted: false }])
    expect(RevisionTree.decode(one.encode()).nodes()).to.deep.equal(one.nodes())
  })

  it('orders leaves by liveness, generation and hash bytes', () => {
    const tree = merged([1, hex('a')], [1, hex('b')], [9, hex('0'), true], [2, hex('1')], [3, 'zz', true])
    expect(tree.leaves().map(entry => entry.revision)).to.deep.equal([
      `2-${hex('1')}`, `1-${hex('b')}`, `1-${hex('a')}`, `9-${hex('0')}`, '3-zz',
    ])
  })

  it('shows in its branches which bodies are stored and which revisions were tombstones', () => {
    let tree = RevisionTree.empty
    const edit = (start: number, ids: string[], deleted: boolean, bodyKey: number | null): void => {
      tree = tree.merge({ start, ids }, { deleted, bodyKey }).tree
    }
    edit(1, ['a'], false, 10)
    edit(2, ['b', 'a'], true, 11)
    edit(4, ['d', 'c', 'b'], false, 12)
    expect(tree.branches()).to.deep.equal([{
      path: { start: 4, ids: ['d', 'c', 'b', 'a'] }, deleted: false, available: [true, false, true, true],
      tombstones: [false, false, true, false],
    }])
    const { tree: compacted, released } = tree.releaseInnerBodies()
    expect(released).to.deep.equal([10, 11])
    expect(compacted.branches()[0]?.available).to.deep.equal([true, false, false, false])
    expect(compacted.bodyKeys()).to.deep.equal([12])
    expect(compacted.releaseInnerBodies().tree).to.equal(compacted)
  })

  it('records that an ancestor was a tombstone when its revision arrives late, but stores no second body', () => {
    const { tree, result } = merged([2, 'b a']).merge({ start: 1, ids: ['a'] }, { deleted: true, bodyKey: 5 })
    expect(result).to.equal('internal')
    expect(tree.branches()[0]).to.deep.include({ tombstones: [false, true], available: [false, false] })
    expect(tree.merge({ start: 2, ids: ['b'] }, { deleted: true, bodyKey: 5 }).tree).to.equal(tree)
  })
})

describe('stemming a revision tree', () => {
  it('keeps the last revisions of each branch', () => {
    const tree = merged([5, 'e d c b a'], [4, 'y x b'])
    expect(tree.stem(2).branches().map(branch => branch.path)).to.deep.equal([
      { start: 5, ids: ['e', 'd'] }, { start: 4, ids: ['y', 'x'] },
    ])
    expect(tree.stem(3).nodes().map(node => node.hash)).to.deep.equal(['b', 'c', 'x', 'd', 'y', 'e'])
    expect(tree.stem(1).leaves()).to.deep.equal(tree.leaves())
    expect(tree.stem(5)).to.equal(tree)
  })

  it('may split one tree into several, which can be extended further', () => {
    const cut = merged([3, 'c b a'], [3, 'x b']).stem(1)
    expect(cut.nodes().every(node => node.parents.length === 0)).to.equal(true)
    expect(cut.merge({ start: 4, ids: ['d', 'c', 'b'] }, leaf).result).to.equal('new-leaf')
  })

  it('never changes the leaves, and is idempotent', () => {
    fc.assert(fc.property(histories, fc.integer({ min: 1, max: 5 }), (edits, limit) => {
      const tree = mergeAll(edits)
      const cut = tree.stem(limit)
      expect(cut.leaves()).to.deep.equal(tree.leaves())
      expect(cut.stem(limit)).to.equal(cut)
      for (const branch of cut.branches()) {
        const whole = tree.path(`${branch.path.start}-${branch.path.ids[0]}`)!
        expect(branch.path.ids.slice(0, limit)).to.deep.equal(whole.ids.slice(0, limit))
      }
    }))
  })

  it('keeps exactly the revisions that are near enough to a leaf', () => {
    fc.assert(fc.property(histories, fc.integer({ min: 1, max: 4 }), (edits, limit) => {
      const tree = mergeAll(edits)
      const kept = new Set(tree.branches().flatMap(({ path: { start, ids } }) =>
        ids.slice(0, limit).map((id, index) => `${start - index}-${id}`)))
      expect(new Set(tree.stem(limit).nodes().map(({ generation, hash }) => `${generation}-${hash}`)))
        .to.deep.equal(kept)
    }), { numRuns: 300 })
  })

  it('keeps fewer revisions of each branch when a document has many, and all leaves', () => {
    let tree = RevisionTree.empty
    for (let branch = 0; branch < 200; branch++) {
      const ids = Array.from({ length: 300 }, (_, index) => (branch * 300 + index).toString(16).padStart(32, '0'))
      tree = tree.merge({ start: 300, ids }, leaf).tree
    }
    const stemmed = tree.stem(1000)
    expect(stemmed.nodes()).to.have.length(treeRevisionsMax)
    expect(stemmed.leaves()).to.deep.equal(tree.leaves())
    expect(stemmed.branches().map(({ path }) => path.ids.length)).to.deep.equal(
      Array.from({ length: 200 }, () => treeRevisionsMax / 200),
    )
    expect(stemmed.stem(1000)).to.equal(stemmed)
    expect(tree.stem(10).nodes()).to.have.length(2000)
  }).timeout(60_000)

  it('bounds a single branch, whatever the limit', () => {
    const ids = Array.from({ length: treeRevisionsMax + 10 }, (_, index) => index.toString(16).padStart(32, '0'))
    const { tree } = RevisionTree.empty.merge({ start: ids.length, ids }, leaf)
    expect(tree.stem(1_000_000_000).path(`${ids.length}-${ids[0]}`)?.ids).to.deep.equal(ids.slice(0, treeRevisionsMax))
  }).timeout(60_000)

  it('stems a single branch in the same way when it was decoded', () => {
    const tree = merged([5, 'e d c b a'])
    const bytes = tree.encode()
    for (const limit of [1, 2, 4, 5, 6]) {
      const stemmed = RevisionTree.decode(bytes).stem(limit)
      expect(stemmed.nodes()).to.deep.equal(tree.stem(limit).nodes())
      expect(stemmed.leafNodes()).to.deep.equal(tree.stem(limit).leafNodes())
      expect(stemmed.path('5-e')!.ids).to.have.length(Math.min(limit, 5))
      const extended = [stemmed, tree.stem(limit)].map(each =>
        each.merge({ start: 6, ids: ['f', 'e'] }, leaf).tree.nodes())
      expect(extended[0]).to.deep.equal(extended[1])
    }
  })

  it('stems a branch of a thousand revisions', () => {
    const ids = Array.from({ length: 1500 }, (_, i) => (1500 - i).toString(16).padStart(32, '0'))
    const tree = RevisionTree.empty.merge({ start: 1500, ids }, leaf).tree.stem(1000)
    expect(tree.path(`1500-${ids[0]}`)?.ids).to.have.length(1000)
    expect(RevisionTree.decode(tree.encode()).winner()).to.deep.equal(tree.winner())
  })
})

describe('questions to a revision tree', () => {
  const tree = merged([3, 'c b a'], [2, 'x a'], [1, 'r'], [4, 's t', true])

  it('finds missing revisions and their possible ancestors', () => {
    expect(tree.missing(['3-c', '9-z', '1-a', '2-c'])).to.deep.equal(['9-z', '2-c'])
    expect(tree.possibleAncestors(['4-z', '1-q'])).to.deep.equal(['1-r', '2-x', '3-c'])
    expect(tree.possibleAncestors(['5-z'])).to.deep.equal(['1-r', '2-x', '3-c', '4-s'])
    expect(tree.possibleAncestors(['1-z'])).to.deep.equal([])
    expect(RevisionTree.empty.possibleAncestors(['9-z'])).to.deep.equal([])
    expect(tree.possibleAncestors(Array.from({ length: 200_000 }, (_, i) =>
      `2-${i}`)), 'of more than a call takes arguments').to.deep.equal(['1-r'])
  })

  it('finds the leaves that descend from a revision', () => {
    expect(tree.latest('1-a')).to.deep.equal(['3-c', '2-x'])
    expect(tree.latest('2-b')).to.deep.equal(['3-c'])
    expect(tree.latest('4-s')).to.deep.equal(['4-s'])
    expect(tree.latest('7-none')).to.deep.equal([])
  })

  it('decides edits: a live leaf, nothing yet, or the winning tombstone', () => {
    const dead = merged([2, 'b a', true], [3, 'c b2', true])
    const decide = (of: RevisionTree, parent: string | null, deleted = false) => of.decideEdit({ parent, deleted })
    expect(decide(RevisionTree.empty, null)).to.deep.equal({ kind: 'extend', parent: null })
    expect(decide(RevisionTree.empty, null, true)).to.deep.equal({ kind: 'extend', parent: null })
    expect(decide(RevisionTree.empty, '1-a')).to.deep.equal({ kind: 'conflict' })
    expect(decide(tree, '2-x')).to.deep.equal({ kind: 'extend', parent: '2-x' })
    expect(decide(tree, '2-x', true)).to.deep.equal({ kind: 'extend', parent: '2-x' })
    expect(decide(tree, '1-a')).to.deep.equal({ kind: 'conflict' })
    expect(decide(tree, '4-s')).to.deep.equal({ kind: 'conflict' })
    expect(decide(tree, null)).to.deep.equal({ kind: 'conflict' })
    expect(decide(dead, null)).to.deep.equal({ kind: 'extend', parent: '3-c' })
    expect(decide(dead, null, true)).to.deep.equal({ kind: 'conflict' })
    expect(decide(dead, '3-c')).to.deep.equal({ kind: 'conflict' })
  })

  it('reports the winning tombstone when an edit that must name it names none or another one', () => {
    const dead = merged([2, 'b a', true], [3, 'c b2', true])
    const decide = (revives: string | null) => dead.decideEdit({ parent: null, deleted: false, revives })
    expect(decide('3-c')).to.deep.equal({ kind: 'extend', parent: '3-c' })
    for (const revives of [null, '2-b']) {
      expect(decide(revives)).to.deep.equal({ kind: 'tombstone', revision: '3-c' })
    }
  })

  it('finds nodes by their revisions', () => {
    expect(tree.has('2-b')).to.equal(true)
    expect(tree.has('2-z')).to.equal(false)
    expect(tree.isLeaf('3-c')).to.equal(true)
    expect(tree.isLeaf('2-b')).to.equal(false)
    expect(tree.path('9-z')).to.equal(null)
    expect(tree.isEmpty).to.equal(false)
    expect(RevisionTree.empty.isEmpty).to.equal(true)
    expect(() => RevisionTree.empty.winner()).to.throw(RangeError)
    expect(compareRevisions(tree.leaves()[0]!.revision, '3-c')).to.equal(0)
  })
})
