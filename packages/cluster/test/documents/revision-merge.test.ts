import { compareLeaves, RevisionTree } from '@sectional/core'
import { expect } from 'chai'
import fc from 'fast-check'
import { mergeBranches, sameLeaves } from '../../src/documents/revision-merge.ts'

/** Paths as root-to-leaf words over a small alphabet: generation i has hash = the word's first i letters. */
const words = fc.array(fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 4 }), {
  minLength: 1, maxLength: 5,
})

function treeOf(paths: readonly (readonly string[])[]): RevisionTree {
  return paths.reduce((tree, word) => tree.merge({ start: word.length, ids: word.map((_, i) =>
    word.slice(0, word.length - i).join('')) }, { deleted: word.length === 3, bodyKey: 1 }).tree, RevisionTree.empty)
}

describe('merge of replies', () => {
  it('finds the leaves of one tree with all revisions', () => {
    fc.assert(fc.property(fc.array(words, { minLength: 1, maxLength: 4 }), replicas => {
      const merged = mergeBranches(replicas.flatMap(paths => treeOf(paths).branches()))
      const whole = treeOf(replicas.flat())
      expect(merged.leaves.map(leaf => leaf.revision)).to.deep.equal(whole.leaves().map(leaf => leaf.revision))
      expect([...merged.leaves].sort(compareLeaves)).to.deep.equal(merged.leaves)
      expect(merged.branches.map(branch => branch.path)).to.deep.equal(whole.branches().map(branch => branch.path))
    }))
  })

  it('does not depend on the order of replies', () => {
    fc.assert(fc.property(words, words, (left, right) => {
      const branches = [treeOf(left).branches(), treeOf(right).branches()]
      expect(mergeBranches(branches.flat())).to.deep.equal(mergeBranches(branches.reverse().flat()))
    }))
  })

  it('compares leaf lists', () => {
    const [a, b] = [{ revision: '1-a', deleted: false }, { revision: '1-b', deleted: false }]
    expect(sameLeaves([a, b], [a, b])).to.equal(true)
    expect(sameLeaves([a], [a, b])).to.equal(false)
    expect(sameLeaves([a], [{ ...a, deleted: true }])).to.equal(false)
  })
})
