import type { RevisionTree } from '@sectional/core'

/** Keeps the last `limit` revisions of each branch. `cut`: the sequences of the bodies of the removed revisions. */
export function stem(
  tree: RevisionTree, limit: number,
): { readonly tree: RevisionTree; readonly cut: readonly number[] } {
  const stemmed = tree.stem(limit)
  if (stemmed === tree) return { tree, cut: [] }
  const kept = new Set(stemmed.bodyKeys())
  return { tree: stemmed, cut: tree.bodyKeys().filter(sequence => !kept.has(sequence)) }
}
