/**
 * Operations on the nodes of a revision tree, which are sorted ascending by (generation, hash). Their time is
 * proportional to the number of nodes, because a tree has up to `treeRevisionsMax` nodes and a request may change it
 * hundreds of times.
 */
import { compareRevisionHashes } from './revision-id.ts'
import type { RevisionNode } from './revision-node-codec.ts'

/**
 * Inserts the nodes of one path, or replaces older versions of them.
 *
 * @param nodes ascending
 * @param changed newest first, at most one of each generation
 */
export function withNodes(nodes: readonly RevisionNode[], changed: readonly RevisionNode[]): RevisionNode[] {
  const all = new Array<RevisionNode>(nodes.length + changed.length)
  let from = 0
  let to = 0
  for (const node of changed.toReversed()) {
    const at = position(nodes, other => compareNodes(other, node))
    while (from < at) all[to++] = nodes[from++]!
    all[to++] = node
    if (at < nodes.length && isSameRevision(nodes[at]!, node)) from = at + 1
  }
  while (from < nodes.length) all[to++] = nodes[from++]!
  all.length = to
  return all
}

/** Returns the nodes without children, winner first. */
export function findLeaves(nodes: readonly RevisionNode[]): readonly RevisionNode[] {
  if (nodes.length === 1) return nodes
  const leaves: RevisionNode[] = []
  /** Parents of the nodes of `generation`. */
  let parents = new Set<string>()
  /** Parents of the nodes one generation higher. */
  let children = new Set<string>()
  let generation = Number.POSITIVE_INFINITY
  for (let index = nodes.length - 1; index >= 0; index--) {
    const node = nodes[index]!
    if (node.generation !== generation) {
      children = node.generation === generation - 1 ? parents : new Set()
      parents = new Set()
      generation = node.generation
    }
    for (const hash of node.parents) parents.add(hash)
    if (!children.has(node.hash)) leaves.push(node)
  }
  return leaves.sort(compareLeafNodes)
}

/**
 * Keeps the nodes that are leaves or fewer than `limit` (1 or more) generations away from a leaf that descends from
 * them, and the links between these nodes.
 *
 * @param nodes ascending
 * @param leaves the nodes without children, the same objects as in `nodes`
 * @returns `nodes` itself when nothing is removed
 */
export function nearLeaves(
  nodes: readonly RevisionNode[], leaves: readonly RevisionNode[], limit: number,
): readonly RevisionNode[] {
  const isLeaf = new Set(leaves)
  const kept: RevisionNode[] = []
  /** For each hash of the current generation, the number of generations to the nearest leaf; absent: too many. */
  let distances = new Map<string, number>()
  /** The same for the parents of the current generation. */
  let parentDistances = new Map<string, number>()
  let generation = Number.POSITIVE_INFINITY
  for (let index = nodes.length - 1; index >= 0; index--) {
    const node = nodes[index]!
    if (node.generation !== generation) {
      distances = node.generation === generation - 1 ? parentDistances : new Map()
      parentDistances = new Map()
      generation = node.generation
    }
    const distance = isLeaf.has(node) ? 0 : distances.get(node.hash)
    if (distance === undefined) continue
    kept.push(node)
    if (distance + 1 === limit) continue
    for (const hash of node.parents) {
      parentDistances.set(hash, Math.min(distance + 1, parentDistances.get(hash) ?? Number.POSITIVE_INFINITY))
    }
  }
  return kept.length === nodes.length ? nodes : withoutLostParents(kept.reverse())
}

/** Removes links to nodes that are not among the nodes. */
function withoutLostParents(nodes: readonly RevisionNode[]): readonly RevisionNode[] {
  let below = new Set<string>()
  let current = new Set<string>()
  let generation = -1
  return nodes.map(node => {
    if (node.generation !== generation) {
      below = node.generation === generation + 1 ? current : new Set()
      current = new Set()
      generation = node.generation
    }
    current.add(node.hash)
    return node.parents.every(hash => below.has(hash))
      ? node
      : { ...node, parents: node.parents.filter(hash => below.has(hash)) }
  })
}

export function isSameRevision(a: RevisionNode, b: RevisionNode): boolean {
  return a.generation === b.generation && a.hash === b.hash
}

export function compareNodes(a: RevisionNode, b: RevisionNode): number {
  return a.generation - b.generation || compareRevisionHashes(a.hash, b.hash)
}

/** Orders the winner first. */
export function compareLeafNodes(a: RevisionNode, b: RevisionNode): number {
  if (a.deleted !== b.deleted) return a.deleted ? 1 : -1
  return compareNodes(b, a)
}

/**
 * Finds a position in sorted nodes by bisection.
 *
 * @param compare negative for the nodes before the position
 * @returns the index of the first node for which `compare` is not negative; the length when there is none
 */
export function position(nodes: readonly RevisionNode[], compare: (node: RevisionNode) => number): number {
  let from = 0
  let to = nodes.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (compare(nodes[middle]!) < 0) from = middle + 1
    else to = middle
  }
  return from
}
