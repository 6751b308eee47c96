/**
 * A revision tree with a single branch, as nearly every document has, kept as bytes. Only its leaf is decoded. Reading,
 * extending and stemming do not decode the ancestors, of which there may be a thousand.
 */
import { ByteReader, varintBytesMax, varintLength, writeVarint } from '../encoding/varint.ts'
import {
  type NodeState, nodeSize, readHash, readNode, type RevisionNode, skipNode, writeNode,
} from './revision-node-codec.ts'

export class RevisionChain {
  readonly leaf: RevisionNode
  readonly length: number
  /** The encoded ancestors of the leaf, newest first. Nodes that were stemmed may follow them. */
  readonly #ancestors: Uint8Array

  private constructor(leaf: RevisionNode, length: number, ancestors: Uint8Array) {
    this.leaf = leaf
    this.length = length
    this.#ancestors = ancestors
  }

  /** @throws RangeError when the bytes are no chain */
  static decode(bytes: Uint8Array, offset: number): RevisionChain {
    const reader = new ByteReader(bytes, offset)
    const generation = reader.varint()
    const length = reader.varint()
    if (length < 1) throw new RangeError('a chain without revisions')
    const state = readNode(reader)
    const ancestors = bytes.subarray(reader.offset)
    const parents = length === 1 ? [] : [readHash(reader, reader.byte())]
    return new RevisionChain({ generation, ...state, parents }, length, ancestors)
  }

  /** Returns the bytes for `decode`, after `reserved` bytes that the caller fills in. */
  encode(reserved: number): Buffer {
    const { generation } = this.leaf
    const end = this.#depthOffset(this.length)
    const bytes = Buffer.allocUnsafe(
      reserved + varintLength(generation) + varintLength(this.length) + nodeSize(this.leaf) + end + varintBytesMax,
    )
    let offset = writeVarint(bytes, reserved, generation)
    offset = writeVarint(bytes, offset, this.length)
    offset = writeNode(bytes, offset, this.leaf)
    bytes.set(this.#ancestors.subarray(0, end), offset)
    return bytes.subarray(0, offset + end)
  }

  /** Returns all nodes, oldest first. */
  nodes(): RevisionNode[] {
    const states = this.#states()
    const nodes: RevisionNode[] = []
    for (let i = states.length - 1; i >= 0; i--) {
      const parent = states[i + 1]
      nodes.push({
        generation: this.leaf.generation - 1 - i, ...states[i]!, parents: parent === undefined ? [] : [parent.hash],
      })
    }
    nodes.push(this.leaf)
    return nodes
  }

  /** Returns the hashes of all revisions, newest first. */
  hashes(): string[] {
    return this.length === 1 ? [this.leaf.hash] : [this.leaf.hash, ...this.#states().map(state => state.hash)]
  }

  /** Returns the node of that generation. */
  node(generation: number): RevisionNode | undefined {
    const depth = this.leaf.generation - generation
    if (depth === 0) return this.leaf
    if (depth < 0 || depth >= this.length) return undefined
    const reader = new ByteReader(this.#ancestors, this.#depthOffset(depth))
    const state = readNode(reader)
    return { generation, ...state, parents: depth === this.length - 1 ? [] : [readHash(reader, reader.byte())] }
  }

  /** Returns the chain with one more revision after its leaf. */
  extend(state: NodeState): RevisionChain {
    const ancestors = Buffer.allocUnsafe(nodeSize(this.leaf) + this.#ancestors.length)
    const offset = writeNode(ancestors, 0, this.leaf)
    ancestors.set(this.#ancestors, offset)
    const { hash, deleted, bodyKey } = state
    return new RevisionChain(
      { generation: this.leaf.generation + 1, hash, deleted, bodyKey, parents: [this.leaf.hash] }, this.length + 1,
      ancestors,
    )
  }

  /** Returns the chain of the last `limit` (1 or more, less than the length) revisions. */
  stem(limit: number): RevisionChain {
    const leaf = limit === 1 ? { ...this.leaf, parents: [] } : this.leaf
    return new RevisionChain(leaf, limit, this.#ancestors)
  }

  #states(): NodeState[] {
    const reader = new ByteReader(this.#ancestors)
    return Array.from({ length: this.length - 1 }, () => readNode(reader))
  }

  /** Returns the offset in `#ancestors` of the node that is `depth` (1 or more) generations before the leaf. */
  #depthOffset(depth: number): number {
    const reader = new ByteReader(this.#ancestors)
    for (let i = 1; i < depth; i++) skipNode(reader)
    return reader.offset
  }
}
