/**
 * The revision tree of one document. It makes concurrent edits of the document safe.
 *
 * Every edit names the revision that it replaces, so the revisions of a document form a tree. A leaf is a current
 * version; several leaves are a conflict; a deleted leaf is a tombstone. The winner is the leaf that is greatest in
 * (not deleted, generation, hash bytes). Each replica determines the same winner without communication.
 *
 * A tree is a set of nodes keyed by (generation, hash). Each node has links to its parents, which are one generation
 * lower. To merge a path is to form the union of nodes and links. Union is commutative, associative and idempotent, so
 * replicas end with the same tree in whatever order, and however often, edits arrive. The union also covers the special
 * cases: a path joins the tree at the deepest shared node, it becomes a new branch when nothing is shared, and it
 * reconnects a stemmed root when the ancestors of that root become known. A revision normally has one parent, because
 * its hash covers the parent. Made-up ids (the short ids of test suites) may have a second parent. The union must keep
 * it, because otherwise the result would depend on the order. Ancestry then follows the greatest parent hash.
 *
 * Stemming keeps the last `limit` revisions of each branch. It is the only step that is not a union: a replica that has
 * removed an ancestor takes an old revision of it for a new branch. CouchDB behaves in the same way. The limit should
 * therefore exceed the number of revisions by which replicas or clusters diverge.
 *
 * A tree with many leaves keeps fewer revisions of each branch, so that it has about `treeRevisionsMax` nodes at most.
 * The number depends only on the limit and on the number of leaves, so replicas with the same leaves use the same one.
 *
 * A node has the key under which the engine stored its body (`bodyKey`). A body is stored with a revision that is new,
 * and with an ancestor that has no body when a client sends it (`withBody`): a known revision that is sent again never
 * replaces the stored content. Otherwise a repeated inner revision only adds the information that it was a tombstone.
 *
 * Trees are immutable. Each read decodes the tree of its document. A tree with a single branch, the usual case, keeps
 * the ancestors of its leaf as bytes until they are needed (`revision-chain.ts`).
 */
import type { Branch, DocumentEdit, Leaf, RevisionPath } from '../contracts/shard-replica.ts'
import { compareRevisionHashes, readRevision } from './revision-id.ts'
import { RevisionChain } from './revision-chain.ts'
import type { RevisionNode } from './revision-node-codec.ts'
import { decodeTree, encodeChain, encodeNodes } from './revision-tree-codec.ts'
import {
  compareLeafNodes, compareNodes, findLeaves, isSameRevision, nearLeaves, position, withNodes,
} from './sorted-nodes.ts'

/**
 * Maximum number of revisions that stemming keeps of one document, as long as each branch can keep
 * `branchRevisionsMin`. Each change of the document decodes and writes its tree, in one turn of the event loop: about
 * 0.1 s for this many revisions.
 */
export const treeRevisionsMax = 50_000

/** Stemming keeps at least this many revisions of each branch, unless `_revs_limit` is smaller. */
const branchRevisionsMin = 5

/**
 * Maximum number of leaves, tombstones included, that clients can write to a document with `new_edits=false`. Replicas
 * that exchange their leaves may exceed it. Each call that concerns the document decodes its leaves in one turn of the
 * event loop, and a call that writes hundreds of new ones takes about 0.1 s for this many.
 */
export const documentLeavesMax = treeRevisionsMax / branchRevisionsMin

export interface LeafInfo { readonly deleted: boolean; readonly bodyKey: number | null }

/** The effect of a merge on the revision at the head of the path. */
export type MergeResult =
  | 'new-leaf' // it extends an existing leaf, or is the first of the document
  | 'new-branch' // it is a leaf beside others: a conflict
  | 'internal' // it was known already, as leaf or ancestor: the tree does not have the key of its body

export interface MergedTree {
  /** The same object when the merge changed nothing. */
  readonly tree: RevisionTree
  readonly result: MergeResult
}

export type EditDecision =
  | { readonly kind: 'conflict' }
  /** The edit would extend this tombstone, which it does not name. */
  | { readonly kind: 'tombstone'; readonly revision: string }
  /** The revision to extend; null: a first revision. */
  | { readonly kind: 'extend'; readonly parent: string | null }

export interface PurgedTree {
  readonly tree: RevisionTree
  readonly purged: readonly string[]
  readonly released: readonly number[]
}

export class RevisionTree {
  static readonly empty: RevisionTree = RevisionTree.#from([])

  /**
   * The tree when it is a single branch that was decoded from bytes or extends such a branch; then `#nodes` is lazy.
   */
  readonly #chain: RevisionChain | null
  #nodes: readonly RevisionNode[] | null
  #leafNodes: readonly RevisionNode[] | null
  #byRevision: Map<string, RevisionNode> | null = null
  /** The children of each revision that has any; null until they are requested. */
  #children: Map<string, RevisionNode[]> | null = null

  private constructor(
    source: RevisionChain | readonly RevisionNode[], leafNodes: readonly RevisionNode[] | null = null,
  ) {
    this.#chain = source instanceof RevisionChain ? source : null
    this.#nodes = source instanceof RevisionChain ? null : source
    this.#leafNodes = source instanceof RevisionChain ? [source.leaf] : leafNodes
  }

  static #from(nodes: readonly RevisionNode[]): RevisionTree {
    return new RevisionTree(nodes)
  }

  /** @throws RangeError when the bytes are not a tree */
  static decode(bytes: Uint8Array): RevisionTree {
    return new RevisionTree(decodeTree(bytes))
  }

  encode(): Uint8Array {
    return this.#chain === null ? encodeNodes(this.nodes()) : encodeChain(this.#chain)
  }

  /** Returns all nodes, ascending by (generation, hash). */
  nodes(): readonly RevisionNode[] {
    return this.#nodes ??= this.#chain?.nodes() ?? []
  }

  get isEmpty(): boolean {
    return this.#nodes?.length === 0
  }

  /** Returns the nodes of the leaves, winner first. */
  leafNodes(): readonly RevisionNode[] {
    return this.#leafNodes ??= findLeaves(this.nodes())
  }

  /** Returns the leaves, winner first. */
  leaves(): Leaf[] {
    return this.leafNodes().map(node => ({ revision: revisionOf(node), deleted: node.deleted }))
  }

  /** @throws RangeError when the tree is empty */
  winner(): RevisionNode {
    const winner = this.leafNodes()[0]
    if (winner === undefined) throw new RangeError('an empty tree has no winner')
    return winner
  }

  /** Returns the node of a revision, which must be in normal form (`formatRevision`). */
  node(revision: string): RevisionNode | undefined {
    if (this.#chain !== null) {
      const wanted = readRevision(revision)
      const node = wanted === null ? undefined : this.#chain.node(wanted.generation)
      return node?.hash === wanted?.hash ? node : undefined
    }
    this.#byRevision ??= new Map(this.nodes().map(node => [revisionOf(node), node]))
    return this.#byRevision.get(revision)
  }

  has(revision: string): boolean {
    return this.node(revision) !== undefined
  }

  isLeaf(revision: string): boolean {
    return this.#leaf(revision) !== undefined
  }

  #leaf(revision: string): RevisionNode | undefined {
    const leaves = this.leafNodes()
    const [first] = leaves
    if (first === undefined || revisionOf(first) === revision) return first
    const wanted = leaves.length === 1 ? null : readRevision(revision)
    const node = wanted === null ? undefined : this.#find(wanted.generation, wanted.hash)
    return node !== undefined && revisionOf(node) === revision && this.#isLeafNode(node) ? node : undefined
  }

  /** Returns a revision with its ancestors, as far as the tree has them; null for an unknown revision. */
  path(revision: string): RevisionPath | null {
    if (this.#chain !== null && revisionOf(this.#chain.leaf) === revision) {
      return { start: this.#chain.leaf.generation, ids: this.#chain.hashes() }
    }
    const wanted = readRevision(revision)
    const node = wanted === null ? undefined : this.#find(wanted.generation, wanted.hash)
    return node === undefined ? null : { start: node.generation, ids: this.#ancestry(node).map(entry => entry.hash) }
  }

  #ancestry(node: RevisionNode): readonly RevisionNode[] {
    if (this.#chain !== null) return this.nodes().filter(entry => entry.generation <= node.generation).reverse()
    const line = [node]
    for (let next = this.#parent(node); next !== undefined; next = this.#parent(next)) line.push(next)
    return line
  }

  #parent(node: RevisionNode): RevisionNode | undefined {
    const hash = node.parents[0]
    return hash === undefined ? undefined : this.#find(node.generation - 1, hash)
  }

  /** Returns one branch for each leaf, winner first. */
  branches(): Branch[] {
    return this.leafNodes().map(leaf => {
      const line = this.#ancestry(leaf)
      return {
        path: { start: leaf.generation, ids: line.map(node => node.hash) },
        deleted: leaf.deleted,
        available: line.map(node => node.bodyKey !== null),
        tombstones: line.map(node => node.deleted),
      }
    })
  }

  /**
   * Whether the parent of the path's newest revision has another child; for a path without a parent, whether the tree
   * has another root. Also true when some branch may descend from such a child but stemming has removed the ancestors
   * that would show it: a root of this generation or a higher one, other than a first revision, is the end of such a
   * branch. Visits only nodes of these generations, because a call may ask this for each of thousands of branches.
   */
  hasSibling({ start, ids: [hash, parent] }: RevisionPath): boolean {
    if (this.#chain !== null && this.has(`${start}-${hash}`)) return false
    const nodes = this.nodes()
    for (let index = position(nodes, node => node.generation - start); index < nodes.length; index++) {
      const { generation, hash: other, parents } = nodes[index]!
      if (generation === start && other === hash) continue
      if (parents.length === 0 && generation > 1) return true
      if (generation === start && (parent === undefined ? parents.length === 0 : parents.includes(parent))) return true
    }
    return false
  }

  /** Adds a revision with its ancestors, as the head of this file explains. */
  merge(path: RevisionPath, leaf: LeafInfo): MergedTree {
    const head = path.ids[0]
    if (head === undefined || path.start - path.ids.length + 1 < 0) {
      throw new RangeError('a path needs one revision per generation')
    }
    if (path.ids.length === 1 && this.isEmpty) {
      return { tree: RevisionTree.#from([newNode(path, 0, leaf)]), result: 'new-leaf' }
    }
    const extended = this.#extendChain(path, leaf)
    if (extended !== null) return { tree: new RevisionTree(extended), result: 'new-leaf' }
    // Decode a chain once here instead of walking it for each revision of the path.
    if (path.ids.length > walkedMax) this.nodes()
    const found = path.ids.map((hash, i) => this.#find(path.start - i, hash))
    let extendsLeaf = this.isEmpty
    /** New and changed nodes, newest first, at most one of each generation. */
    const changed: RevisionNode[] = []
    /** Known leaves that get a child by this path. */
    const replaced: RevisionNode[] = []
    for (let i = 0; i < path.ids.length; i++) {
      const node = found[i]
      if (node === undefined) {
        changed.push(newNode(path, i, i === 0 ? leaf : { deleted: false, bodyKey: null }))
        continue
      }
      const wasLeaf = this.#isLeafNode(node)
      if (wasLeaf) extendsLeaf = true
      if (wasLeaf && i > 0) replaced.push(node)
      const parents = withParent(node.parents, path.ids[i + 1])
      const deleted = node.deleted || (i === 0 && leaf.deleted && !wasLeaf)
      if (parents !== node.parents || deleted !== node.deleted) changed.push({ ...node, parents, deleted })
    }
    const result = found[0] !== undefined ? 'internal' : extendsLeaf ? 'new-leaf' : 'new-branch'
    if (changed.length === 0) return { tree: this, result }
    const leaves = this.leafNodes().slice()
    for (const node of replaced) leaves.splice(position(leaves, other => compareLeafNodes(other, node)), 1)
    const newest = changed[0]!
    if (found[0] === undefined) leaves.splice(position(leaves, other => compareLeafNodes(other, newest)), 0, newest)
    else if (isSameRevision(newest, found[0]) && this.#isLeafNode(found[0])) {
      leaves[position(leaves, other => compareLeafNodes(other, newest))] = newest
    }
    return { tree: new RevisionTree(withNodes(this.nodes(), changed), leaves), result }
  }

  /**
   * Returns the tree in which an ancestor that has no body has this one; null when the revision at the head of the path
   * is unknown, or has a body, as leaves do.
   */
  withBody({ start, ids: [hash] }: RevisionPath, bodyKey: number): RevisionTree | null {
    const node = hash === undefined ? undefined : this.#find(start, hash)
    if (node === undefined || node.bodyKey !== null) return null
    return RevisionTree.#from(withNodes(this.nodes(), [{ ...node, bodyKey }]))
  }

  /**
   * Finds a node by bisection, without building the map of all revisions: a bulk may merge thousands of branches into
   * one document, and each merge would build the map anew.
   */
  #find(generation: number, hash: string): RevisionNode | undefined {
    if (this.#nodes === null || this.#byRevision !== null) return this.node(`${generation}-${hash}`)
    const nodes = this.#nodes
    const node = nodes[position(nodes, other =>
      other.generation - generation || compareRevisionHashes(other.hash, hash))]
    return node?.generation === generation && node.hash === hash ? node : undefined
  }

  #isLeafNode(node: RevisionNode): boolean {
    const leaves = this.leafNodes()
    return leaves[position(leaves, other => compareLeafNodes(other, node))] === node
  }

  /** Handles the usual edit, which adds one revision to a single branch and no other node; null: it is not such. */
  #extendChain(path: RevisionPath, leaf: LeafInfo): RevisionChain | null {
    const chain = this.#chain
    if (chain === null || path.start !== chain.leaf.generation + 1 || path.ids[1] !== chain.leaf.hash
      || path.ids.length > chain.length + 1) {
      return null
    }
    if (path.ids.length > 2) {
      const hashes = chain.hashes()
      for (let i = 2; i < path.ids.length; i++) if (path.ids[i] !== hashes[i - 1]) return null
    }
    return chain.extend({ hash: path.ids[0]!, ...leaf })
  }

  /**
   * Decides whether an interactive edit may be made, and which revision it extends
   * (docs/reference/documents.md#revisions). A named parent must be a live leaf. An edit without a parent creates the
   * document, or revives it by extending its winning tombstone, which `revives` may have to name
   * (`DocumentEdit.revives`).
   */
  decideEdit({ parent, deleted, revives }: Pick<DocumentEdit, 'parent' | 'deleted' | 'revives'>): EditDecision {
    if (parent !== null) {
      const leaf = this.#leaf(parent)
      return leaf === undefined || leaf.deleted ? { kind: 'conflict' } : { kind: 'extend', parent }
    }
    if (this.isEmpty) return { kind: 'extend', parent: null }
    const winner = this.winner()
    if (!winner.deleted || deleted) return { kind: 'conflict' }
    const tombstone = revisionOf(winner)
    return revives === undefined || revives === tombstone
      ? { kind: 'extend', parent: tombstone }
      : { kind: 'tombstone', revision: tombstone }
  }

  /**
   * Keeps the last revisions of each branch: `limit` (1 or more), or fewer when the tree would exceed
   * `treeRevisionsMax`. Returns the same object when nothing is removed.
   */
  stem(limit: number): RevisionTree {
    const kept = Math.min(limit, branchRevisionsMax(this.leafNodes().length))
    if (this.#chain !== null) return this.#chain.length <= kept ? this : new RevisionTree(this.#chain.stem(kept))
    const nodes = this.nodes()
    if (nodes.length <= kept || nodes.at(-1)!.generation - nodes[0]!.generation < kept) return this
    const leaves = this.leafNodes()
    const near = nearLeaves(nodes, leaves, kept)
    // With a limit of 1, the leaves have lost their parents and are other objects.
    return near === nodes ? this : new RevisionTree(near, kept === 1 ? null : leaves)
  }

  /**
   * Removes the references to the bodies of inner revisions, for compaction.
   *
   * @returns `tree`: the same object when there are none; `released`: the keys of these bodies
   */
  releaseInnerBodies(): { readonly tree: RevisionTree; readonly released: readonly number[] } {
    const leaves = new Set(this.leafNodes())
    const released: number[] = []
    const nodes = this.nodes().map(node => {
      if (node.bodyKey === null || leaves.has(node)) return node
      released.push(node.bodyKey)
      return { ...node, bodyKey: null }
    })
    return { tree: released.length === 0 ? this : RevisionTree.#from(nodes), released }
  }

  /**
   * Removes leaves, one after the other, each with the ancestors that have no other children. A tree that never had the
   * leaf itself may have these ancestors, which the path names too. A revision that still has children stays, and so do
   * its ancestors.
   *
   * @param paths each from the leaf to its oldest ancestor
   * @returns null when nothing changes; `purged`: the removed revisions that are heads of a path; `released`: the keys
   * of the removed revisions' bodies
   */
  purge(paths: readonly RevisionPath[]): PurgedTree | null {
    const nodes = new Map(this.nodes().map(node => [revisionOf(node), node]))
    const children = new Map<string, number>()
    for (const node of nodes.values()) {
      for (const parent of parentsOf(node)) children.set(parent, (children.get(parent) ?? 0) + 1)
    }
    const purged: string[] = []
    const released: number[] = []
    const before = nodes.size
    for (const { start, ids } of paths) {
      const leaf = `${start}-${ids[0]}`
      if ((children.get(leaf) ?? 0) > 0) continue
      if (nodes.has(leaf)) purged.push(leaf)
      const waiting = ids.map((hash, index) => `${start - index}-${hash}`).reverse()
      for (let revision = waiting.pop(); revision !== undefined; revision = waiting.pop()) {
        const node = nodes.get(revision)
        if (node === undefined || (children.get(revision) ?? 0) > 0) continue
        nodes.delete(revision)
        if (node.bodyKey !== null) released.push(node.bodyKey)
        for (const parent of parentsOf(node)) {
          children.set(parent, children.get(parent)! - 1)
          waiting.push(parent)
        }
      }
    }
    return nodes.size === before ? null : { tree: RevisionTree.#from([...nodes.values()]), purged, released }
  }

  /** Returns the keys of all bodies of this tree. */
  bodyKeys(): number[] {
    return this.nodes().flatMap(node => node.bodyKey === null ? [] : [node.bodyKey])
  }

  /** Returns the given revisions that the tree does not contain, in their order. */
  missing(revisions: readonly string[]): string[] {
    return revisions.filter(revision => !this.has(revision))
  }

  /** Returns the leaves, tombstones included, of a lower generation than the highest missing revision, ascending. */
  possibleAncestors(missing: readonly string[]): string[] {
    const highest = missing.reduce((max, revision) => Math.max(max, readRevision(revision)?.generation ?? -1), -1)
    return this.leafNodes().filter(node => node.generation < highest).sort(compareNodes).map(revisionOf)
  }

  /** Returns the leaves that descend from a revision, winner first. A leaf descends from itself. Empty when unknown. */
  latest(revision: string): string[] {
    const node = this.node(revision)
    if (node === undefined) return []
    if (this.#chain !== null) return [revisionOf(this.#chain.leaf)]
    const reached = new Set([node])
    for (const each of reached) for (const child of this.#childrenOf(each)) reached.add(child)
    return this.leafNodes().filter(leaf => reached.has(leaf)).map(revisionOf)
  }

  #childrenOf(node: RevisionNode): readonly RevisionNode[] {
    if (this.#children === null) {
      this.#children = new Map()
      for (const child of this.nodes()) {
        for (const parent of parentsOf(child)) {
          const siblings = this.#children.get(parent)
          if (siblings === undefined) this.#children.set(parent, [child])
          else siblings.push(child)
        }
      }
    }
    return this.#children.get(revisionOf(node)) ?? []
  }
}

/** Returns how many revisions of each branch stemming keeps at most, in a tree with this many leaves. */
function branchRevisionsMax(leaves: number): number {
  return Math.max(branchRevisionsMin, Math.floor(treeRevisionsMax / leaves))
}

export function revisionOf(node: RevisionNode): string {
  return `${node.generation}-${node.hash}`
}

function parentsOf(node: RevisionNode): string[] {
  return node.parents.map(hash => `${node.generation - 1}-${hash}`)
}

function newNode(path: RevisionPath, index: number, leaf: LeafInfo): RevisionNode {
  const parent = path.ids[index + 1]
  return {
    generation: path.start - index,
    hash: path.ids[index]!,
    deleted: leaf.deleted,
    bodyKey: leaf.bodyKey,
    parents: parent === undefined ? noParents : [parent],
  }
}

/** The revisions of a longer path are looked up in decoded nodes. */
const walkedMax = 16

const noParents: readonly string[] = Object.freeze([])

function withParent(parents: readonly string[], parent: string | undefined): readonly string[] {
  if (parent === undefined || parents.includes(parent)) return parents
  return [...parents, parent].sort((a, b) => compareRevisionHashes(b, a))
}
