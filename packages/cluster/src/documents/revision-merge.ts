import { compareLeaves } from '@sectional/core'
import type { Branch, Leaf } from '@sectional/core'

/** The knowledge of several replicas about one document, merged. */
export interface MergedRevisions {
  /** The winner is first. A revision that is an ancestor on any replica is not a leaf. */
  readonly leaves: readonly Leaf[]
  /** One branch per leaf, in the same order, with the longest ancestry that any replica has. */
  readonly branches: readonly Branch[]
}

/** Returns whether two lists of leaves are equal. Both must have the winner first. */
export function sameLeaves(a: readonly Leaf[], b: readonly Leaf[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) {
    if (a[i]!.revision !== b[i]!.revision || a[i]!.deleted !== b[i]!.deleted) return false
  }
  return true
}

/** Returns the revisions of a branch, leaf first. */
export function branchRevisions(branch: Branch): string[] {
  return branch.path.ids.map((hash, i) => `${branch.path.start - i}-${hash}`)
}

/** Returns a branch for a leaf whose ancestry is not known. */
export function bareBranch(leaf: Leaf): Branch {
  const dash = leaf.revision.indexOf('-')
  return {
    path: { start: Number(leaf.revision.slice(0, dash)), ids: [leaf.revision.slice(dash + 1)] },
    deleted: leaf.deleted, available: [true], tombstones: [leaf.deleted],
  }
}

/** Merges the branches of all replicas. The leaves do not depend on the order of `branches`. */
export function mergeBranches(branches: readonly Branch[]): MergedRevisions {
  const inner = new Set<string>()
  const available = new Set<string>()
  const tombstones = new Set<string>()
  const longest = new Map<string, { readonly branch: Branch; readonly revisions: readonly string[] }>()
  for (const branch of branches) {
    const revisions = branchRevisions(branch)
    revisions.forEach((revision, i) => {
      if (i > 0) inner.add(revision)
      if (branch.available[i]) available.add(revision)
      if (branch.tombstones[i]) tombstones.add(revision)
    })
    const known = longest.get(revisions[0]!)
    if (known === undefined || known.revisions.length < revisions.length) {
      longest.set(revisions[0]!, { branch, revisions })
    }
  }
  const merged = [...longest].filter(([revision]) => !inner.has(revision)).map(([revision, { branch, revisions }]) => ({
    leaf: { revision, deleted: branch.deleted },
    branch: {
      path: branch.path, deleted: branch.deleted,
      available: revisions.map(each => available.has(each)), tombstones: revisions.map(each => tombstones.has(each)),
    },
  })).sort((a, b) => compareLeaves(a.leaf, b.leaf))
  return { leaves: merged.map(each => each.leaf), branches: merged.map(each => each.branch) }
}
