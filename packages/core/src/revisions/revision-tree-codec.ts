/**
 * Bytes of a revision tree, as the engine stores them.
 *
 *     chain   1, varint leaf generation, varint count, node (leaf first, each the child of the next)
 *     graph   2, varint count, per node ascending: varint generation, node, varint parents, hash per parent
 *     node    flags (1 deleted, 2 body key, 4 text hash), hash, [varint body key]
 *     hash    16 bytes, or varint length and UTF-8 (flag 4; a parent has a byte of flags of its own)
 *
 * A chain is one branch, the shape of nearly every document: reading its leaf does not touch the rest.
 */
import { ByteReader, VARINT_BYTES_MAX, varintLength, writeVarint } from '../encoding/varint.ts'
import { isHexHash } from './revision-id.ts'

export interface RevisionNode {
  readonly generation: number
  readonly hash: string
  readonly deleted: boolean
  /** Where the engine stored the body; null: never had it, or gone. */
  readonly bodyKey: number | null
  /** Hashes of known parents, all of generation - 1, greatest first. Empty: a root. */
  readonly parents: readonly string[]
}

/** How a tree comes out of its bytes: the leaf at once, the rest when it is needed. */
export interface TreeSource {
  /** The only leaf of a single branch, null otherwise. */
  readonly leaf: RevisionNode | null
  /** Nodes ascending by (generation, hash). */
  nodes(): readonly RevisionNode[]
}

const CHAIN = 1
const GRAPH = 2

const DELETED = 1
const HAS_BODY_KEY = 2
const TEXT_HASH = 4

const HASH_BYTES = 16

export function encodeTree(nodes: readonly RevisionNode[]): Uint8Array {
  return isChain(nodes) ? encodeChain(nodes) : encodeGraph(nodes)
}

/** @throws RangeError when the bytes are not a tree */
export function decodeTree(bytes: Uint8Array): TreeSource {
  const format = bytes[0]
  if (format === CHAIN) return decodeChain(bytes)
  if (format === GRAPH) {
    const nodes = decodeGraph(bytes)
    return { leaf: null, nodes: () => nodes }
  }
  throw new RangeError(`revision tree of unknown format ${format}`)
}

function isChain(nodes: readonly RevisionNode[]): boolean {
  if (nodes.length === 0 || nodes[0]!.parents.length > 0) return false
  for (let i = 1; i < nodes.length; i++) {
    const node = nodes[i]!
    const below = nodes[i - 1]!
    if (node.generation !== below.generation + 1 || node.parents.length !== 1 || node.parents[0] !== below.hash) return false
  }
  return true
}

function encodeChain(nodes: readonly RevisionNode[]): Uint8Array {
  const leaf = nodes[nodes.length - 1]!
  let size = 1 + varintLength(leaf.generation) + varintLength(nodes.length)
  for (const node of nodes) size += nodeSize(node)
  const bytes = Buffer.allocUnsafe(size + VARINT_BYTES_MAX)
  bytes[0] = CHAIN
  let offset = writeVarint(bytes, 1, leaf.generation)
  offset = writeVarint(bytes, offset, nodes.length)
  for (let i = nodes.length - 1; i >= 0; i--) offset = writeNode(bytes, offset, nodes[i]!)
  return bytes.subarray(0, offset)
}

function decodeChain(bytes: Uint8Array): TreeSource {
  const reader = new ByteReader(bytes, 1)
  const start = reader.varint()
  const count = reader.varint()
  const first = readNode(reader)
  if (count === 1) {
    const leaf: RevisionNode = { generation: start, ...first, parents: [] }
    return { leaf, nodes: () => [leaf] }
  }
  const rest = reader.offset
  const leaf: RevisionNode = { generation: start, ...first, parents: [readHash(reader, reader.byte())] }
  return { leaf, nodes: () => decodeChainNodes(bytes, rest, leaf, count) }
}

function decodeChainNodes(bytes: Uint8Array, offset: number, leaf: RevisionNode, count: number): RevisionNode[] {
  const reader = new ByteReader(bytes, offset)
  const below: PartialNode[] = []
  for (let i = 1; i < count; i++) below.push(readNode(reader))
  const nodes: RevisionNode[] = []
  for (let i = below.length - 1; i >= 0; i--) {
    const parent = below[i + 1]
    nodes.push({ generation: leaf.generation - 1 - i, ...below[i]!, parents: parent === undefined ? [] : [parent.hash] })
  }
  nodes.push(leaf)
  return nodes
}

function encodeGraph(nodes: readonly RevisionNode[]): Uint8Array {
  let size = 1 + varintLength(nodes.length)
  for (const node of nodes) {
    size += varintLength(node.generation) + nodeSize(node) + varintLength(node.parents.length)
    for (const hash of node.parents) size += 1 + hashSize(hash)
  }
  const bytes = Buffer.allocUnsafe(size + VARINT_BYTES_MAX)
  bytes[0] = GRAPH
  let offset = writeVarint(bytes, 1, nodes.length)
  for (const node of nodes) {
    offset = writeVarint(bytes, offset, node.generation)
    offset = writeNode(bytes, offset, node)
    offset = writeVarint(bytes, offset, node.parents.length)
    for (const hash of node.parents) {
      const text = isHexHash(hash) ? 0 : TEXT_HASH
      bytes[offset++] = text
      offset = writeHash(bytes, offset, hash, text)
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
    const node = readNode(reader)
    const parents: string[] = []
    for (let left = reader.varint(); left > 0; left--) parents.push(readHash(reader, reader.byte()))
    nodes.push({ generation, ...node, parents })
  }
  return nodes
}

type PartialNode = Pick<RevisionNode, 'hash' | 'deleted' | 'bodyKey'>

function hashSize(hash: string): number {
  if (isHexHash(hash)) return HASH_BYTES
  const length = Buffer.byteLength(hash)
  return varintLength(length) + length
}

function nodeSize(node: RevisionNode): number {
  return 1 + hashSize(node.hash) + (node.bodyKey === null ? 0 : varintLength(node.bodyKey))
}

function writeNode(bytes: Buffer, offset: number, node: RevisionNode): number {
  const text = isHexHash(node.hash) ? 0 : TEXT_HASH
  bytes[offset++] = (node.deleted ? DELETED : 0) | (node.bodyKey === null ? 0 : HAS_BODY_KEY) | text
  offset = writeHash(bytes, offset, node.hash, text)
  return node.bodyKey === null ? offset : writeVarint(bytes, offset, node.bodyKey)
}

function writeHash(bytes: Buffer, offset: number, hash: string, flags: number): number {
  if ((flags & TEXT_HASH) === 0) {
    bytes.write(hash, offset, HASH_BYTES, 'hex')
    return offset + HASH_BYTES
  }
  offset = writeVarint(bytes, offset, Buffer.byteLength(hash))
  return offset + bytes.write(hash, offset, 'utf8')
}

function readNode(reader: ByteReader): PartialNode {
  const flags = reader.byte()
  const hash = readHash(reader, flags)
  return {
    hash,
    deleted: (flags & DELETED) !== 0,
    bodyKey: (flags & HAS_BODY_KEY) === 0 ? null : reader.varint(),
  }
}

function readHash(reader: ByteReader, flags: number): string {
  const text = (flags & TEXT_HASH) !== 0
  const part = reader.slice(text ? reader.varint() : HASH_BYTES)
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  return bytes.toString(text ? 'utf8' : 'hex')
}
