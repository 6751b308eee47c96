/**
 * The encoding of a revision tree, as the engine stores it.
 *
 *     chain   1, varint leaf generation, varint count, node (leaf first, each the child of the next)
 *     graph   2, varint count, per node ascending: varint generation, node, varint parents, flags and hash per parent
 *
 * `revision-node-codec.ts` defines the encoding of nodes and hashes.
 */
import { ByteReader, varintBytesMax, varintLength, writeVarint } from '../encoding/varint.ts'
import { RevisionChain } from './revision-chain.ts'
import {
  hashFlags, hashSize, nodeSize, readHash, readNode, type RevisionNode, writeHash, writeNode,
} from './revision-node-codec.ts'

const chainForm = 1
const graphForm = 2

export function encodeChain(chain: RevisionChain): Uint8Array {
  const bytes = chain.encode(1)
  bytes[0] = chainForm
  return bytes
}

/** @param nodes ascending by (generation, hash) */
export function encodeNodes(nodes: readonly RevisionNode[]): Uint8Array {
  return isChain(nodes) ? encodeChainNodes(nodes) : encodeGraph(nodes)
}

/** Returns a chain, or the nodes of a graph, ascending. @throws RangeError when the bytes are not a tree */
export function decodeTree(bytes: Uint8Array): RevisionChain | readonly RevisionNode[] {
  if (bytes[0] === chainForm) return RevisionChain.decode(bytes, 1)
  if (bytes[0] === graphForm) return decodeGraph(bytes)
  throw new RangeError(`revision tree of unknown format ${bytes[0]}`)
}

function isChain(nodes: readonly RevisionNode[]): boolean {
  if (nodes.length === 0 || nodes[0]!.parents.length > 0) return false
  for (let i = 1; i < nodes.length; i++) {
    const node = nodes[i]!
    const below = nodes[i - 1]!
    if (node.generation !== below.generation + 1 || node.parents.length !== 1 || node.parents[0] !== below.hash) {
      return false
    }
  }
  return true
}

function encodeChainNodes(nodes: readonly RevisionNode[]): Uint8Array {
  const leaf = nodes[nodes.length - 1]!
  let size = 1 + varintLength(leaf.generation) + varintLength(nodes.length)
  for (const node of nodes) size += nodeSize(node)
  const bytes = Buffer.allocUnsafe(size + varintBytesMax)
  bytes[0] = chainForm
  let offset = writeVarint(bytes, 1, leaf.generation)
  offset = writeVarint(bytes, offset, nodes.length)
  for (let i = nodes.length - 1; i >= 0; i--) offset = writeNode(bytes, offset, nodes[i]!)
  return bytes.subarray(0, offset)
}

function encodeGraph(nodes: readonly RevisionNode[]): Uint8Array {
  let size = 1 + varintLength(nodes.length)
  for (const node of nodes) {
    size += varintLength(node.generation) + nodeSize(node) + varintLength(node.parents.length)
    for (const hash of node.parents) size += 1 + hashSize(hash)
  }
  const bytes = Buffer.allocUnsafe(size + varintBytesMax)
  bytes[0] = graphForm
  let offset = writeVarint(bytes, 1, nodes.length)
  for (const node of nodes) {
    offset = writeVarint(bytes, offset, node.generation)
    offset = writeNode(bytes, offset, node)
    offset = writeVarint(bytes, offset, node.parents.length)
    for (const hash of node.parents) {
      const flags = hashFlags(hash)
      bytes[offset++] = flags
      offset = writeHash(bytes, offset, hash, flags)
    }
  }
  return bytes.subarray(0, offset)
}

function decodeGraph(bytes: Uint8Array): RevisionNode[] {
  const reader = new ByteReader(bytes, 1)
  const count = reader.varint()
  const nodes: RevisionNode[] = []
  for (let i = 0; i < count; i++) {
    const generation = reader.varint()
    const state = readNode(reader)
    const parents: string[] = []
    for (let left = reader.varint(); left > 0; left--) parents.push(readHash(reader, reader.byte()))
    nodes.push({ generation, ...state, parents })
  }
  return nodes
}
