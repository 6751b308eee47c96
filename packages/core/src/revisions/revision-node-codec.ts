/**
 * The encoding of one node of a revision tree:
 *
 *     node    flags (1 deleted, 2 body key, 4 text hash), hash, [varint body key]
 *     hash    16 bytes, or varint length and UTF-8 (flag 4)
 */
import { type ByteReader, varintLength, writeVarint } from '../encoding/varint.ts'
import { isHexHash } from './revision-id.ts'

/** A revision's own state. */
export interface NodeState {
  readonly hash: string
  readonly deleted: boolean
  /** The engine's key of the body; null: the body was never stored here, or was removed. */
  readonly bodyKey: number | null
}

export interface RevisionNode extends NodeState {
  readonly generation: number
  /** Hashes of the known parents, which all have generation - 1, greatest first. Empty for a root. */
  readonly parents: readonly string[]
}

const deletedFlag = 1
const hasBodyKeyFlag = 2
const textHashFlag = 4

const hashBytes = 16

export function hashFlags(hash: string): number {
  return isHexHash(hash) ? 0 : textHashFlag
}

export function hashSize(hash: string): number {
  if (isHexHash(hash)) return hashBytes
  const length = Buffer.byteLength(hash)
  return varintLength(length) + length
}

export function nodeSize(node: NodeState): number {
  return 1 + hashSize(node.hash) + (node.bodyKey === null ? 0 : varintLength(node.bodyKey))
}

export function writeNode(bytes: Buffer, offset: number, node: NodeState): number {
  const flags = hashFlags(node.hash)
  bytes[offset++] = (node.deleted ? deletedFlag : 0) | (node.bodyKey === null ? 0 : hasBodyKeyFlag) | flags
  offset = writeHash(bytes, offset, node.hash, flags)
  return node.bodyKey === null ? offset : writeVarint(bytes, offset, node.bodyKey)
}

export function writeHash(bytes: Buffer, offset: number, hash: string, flags: number): number {
  if ((flags & textHashFlag) === 0) {
    bytes.write(hash, offset, hashBytes, 'hex')
    return offset + hashBytes
  }
  offset = writeVarint(bytes, offset, Buffer.byteLength(hash))
  return offset + bytes.write(hash, offset, 'utf8')
}

export function readNode(reader: ByteReader): NodeState {
  const flags = reader.byte()
  const hash = readHash(reader, flags)
  return {
    hash, deleted: (flags & deletedFlag) !== 0, bodyKey: (flags & hasBodyKeyFlag) === 0 ? null : reader.varint(),
  }
}

export function readHash(reader: ByteReader, flags: number): string {
  const text = (flags & textHashFlag) !== 0
  return text ? reader.text(reader.varint(), 'utf8') : reader.text(hashBytes, 'hex')
}

/** Skips a node without decoding it. */
export function skipNode(reader: ByteReader): void {
  const flags = reader.byte()
  reader.skip((flags & textHashFlag) === 0 ? hashBytes : reader.varint())
  if ((flags & hasBodyKeyFlag) !== 0) reader.varint()
}
