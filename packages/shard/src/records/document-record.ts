import { RevisionTree } from '@sectional/core'
import { sealBytes, sealRecord } from '@sectional/runtime'
import type { ByteWriter } from './byte-writer.ts'
import { ByteReader } from './byte-reader.ts'
import { beginDocumentChange, finishDocumentChange } from './change-record.ts'
import { checkSeal, DamagedRecordError } from './damaged-record.ts'
import { readLeaves, writeLeaves } from './stored-leaves.ts'
import type { StoredLeaf } from './stored-leaves.ts'

const format = 1
const noBytes: Uint8Array = new Uint8Array(0)

export interface EncodedDocument {
  readonly record: DocumentRecord
  readonly bytes: Uint8Array
  readonly change: Uint8Array
}

/**
 * The record of a document. It begins with the leaves, which are sufficient for most calls. The revision tree follows
 * and is decoded on first use.
 */
export class DocumentRecord {
  /** Sequence of the last change. */
  readonly sequence: number
  /** Winner first. */
  readonly leaves: readonly [StoredLeaf, ...StoredLeaf[]]
  /** Length of the stored record in bytes. */
  readonly encodedBytes: number
  #tree: RevisionTree | undefined
  readonly #stored: Uint8Array
  readonly #treeStart: number = 0

  /** @param tree the tree, or its position in the stored record */
  private constructor(
    sequence: number, leaves: readonly [StoredLeaf, ...StoredLeaf[]], encodedBytes: number, tree: RevisionTree | number,
    stored = noBytes,
  ) {
    this.sequence = sequence
    this.leaves = leaves
    this.encodedBytes = encodedBytes
    this.#stored = stored
    if (typeof tree === 'number') this.#treeStart = tree
    else this.#tree = tree
  }

  /**
   * Encodes a record that will be written, and its row in the changes log.
   *
   * @param writer a writer that reserves `sealBytes`, as `changeWriter` does
   */
  static encode(
    writer: ByteWriter, changeWriter: ByteWriter, id: string, sequence: number,
    leaves: readonly [StoredLeaf, ...StoredLeaf[]], tree: RevisionTree,
  ): EncodedDocument {
    writer.byte(format)
    writer.integer(sequence)
    const start = writer.length
    writeLeaves(writer, leaves)
    beginDocumentChange(changeWriter, id)
    changeWriter.copy(writer, start)
    writer.bytes(tree.encode())
    const bytes = sealRecord(writer.finish())
    return {
      record: new DocumentRecord(sequence, leaves, bytes.length, tree), bytes,
      change: finishDocumentChange(changeWriter),
    }
  }

  /** @throws DamagedRecordError */
  static decode(id: string, bytes: Uint8Array): DocumentRecord {
    checkSeal(bytes, `the record of document ${id}`)
    const reader = new ByteReader(bytes, sealBytes)
    const found = reader.byte()
    if (found !== format) {
      throw new DamagedRecordError(`the record of document ${id} has format ${found}; this version reads ${format}`)
    }
    const sequence = reader.integer()
    const leaves = readLeaves(reader)
    return new DocumentRecord(sequence, leaves, bytes.length, reader.offset, bytes)
  }

  get tree(): RevisionTree {
    return this.#tree ??= RevisionTree.decode(this.#stored.subarray(this.#treeStart))
  }

  get winner(): StoredLeaf {
    return this.leaves[0]
  }

  /** Whether every leaf is a tombstone. */
  get deleted(): boolean {
    return this.leaves[0].deleted
  }

  /** Bytes of the leaves' JSON. */
  get bodyBytes(): number {
    let total = 0
    for (const leaf of this.leaves) total += leaf.bodyBytes
    return total
  }
}
