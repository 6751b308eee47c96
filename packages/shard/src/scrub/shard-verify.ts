import { revisionOf } from '@sectional/core'
import { blobKeys, ShardKeys } from '../records/key-layout.ts'
import { decodeChange } from '../records/change-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { decodeLocal } from '../records/local-record.ts'
import { decodePurges } from '../records/purge-records.ts'
import { emptyState } from '../records/state-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'
import { activeBytes } from '../writing/write-draft.ts'

export interface ShardVerification {
  /** Descriptions of the inconsistencies; empty when there are none. */
  readonly problems: readonly string[]
  /** The counters, recomputed from the records; `sequence` is the highest sequence found. */
  readonly state: ReplicaState
}

/**
 * Recomputes a replica's counters, changes log and bodies from its document and local records, and compares them with
 * what is stored. It reads everything; tests and the simulator use it. Nothing may write during the check.
 */
export async function verifyShard(records: ShardRecords): Promise<ShardVerification> {
  const verifier = new ShardVerifier(records)
  await verifier.readDocuments()
  await verifier.readLocals()
  await verifier.readPurges()
  await verifier.readChanges()
  await verifier.readBodies()
  verifier.compareState()
  return { problems: verifier.problems, state: verifier.state }
}

class ShardVerifier {
  readonly problems: string[] = []
  readonly state: { -readonly [Name in keyof ReplicaState]: ReplicaState[Name] } = { ...emptyState }
  readonly #records: ShardRecords
  /** Sequence -> the JSON that its row must have. */
  readonly #changes = new Map<number, string>()
  readonly #bodies = new Map<number, string>()

  constructor(records: ShardRecords) {
    this.#records = records
  }

  async readDocuments(): Promise<void> {
    for await (const page of scanEntries(this.#records.store, this.#records.keys.kind('i'))) {
      for (const [key, value] of page) this.#readDocument(ShardKeys.text(key), value)
    }
  }

  #readDocument(id: string, value: Uint8Array): void {
    const record = DocumentRecord.decode(id, value)
    const { state } = this
    state[record.deleted ? 'deletedCount' : 'documentCount']++
    state.activeBytes += activeBytes(record)
    state.externalBytes += record.bodyBytes
    this.#expectChange(record.sequence, JSON.stringify({ id, leaves: record.leaves }))
    const nodes = record.tree.leafNodes()
    const same = nodes.length === record.leaves.length && nodes.every((node, index) => {
      const leaf = record.leaves[index]
      return leaf?.revision === revisionOf(node) && leaf.deleted === node.deleted && leaf.bodySequence === node.bodyKey
    })
    if (!same) this.problems.push(`document ${id}: its leaves are not those of its tree`)
    for (const sequence of record.tree.bodyKeys()) {
      if (this.#bodies.has(sequence)) {
        this.problems.push(`document ${id}: the body at ${sequence} also belongs to ${this.#bodies.get(sequence)}`)
      }
      this.#bodies.set(sequence, id)
    }
  }

  async readLocals(): Promise<void> {
    for await (const page of scanEntries(this.#records.store, this.#records.keys.kind('l'))) {
      for (const [key, value] of page) {
        const local = decodeLocal(ShardKeys.text(key), value)
        this.state.activeBytes += local.body?.length ?? 0
        this.#expectChange(local.sequence, JSON.stringify({ id: local.id, leaves: [] }))
      }
    }
  }

  async readPurges(): Promise<void> {
    for await (const page of scanEntries(this.#records.store, this.#records.keys.kind('q'))) {
      for (const [key, value] of page) {
        const id = ShardKeys.text(key)
        for (const { changeSequence } of decodePurges(id, value)) {
          if (changeSequence > 0) this.#expectChange(changeSequence, JSON.stringify({ id, leaves: [], purged: true }))
        }
      }
    }
  }

  #expectChange(sequence: number, row: string): void {
    if (this.#changes.has(sequence)) {
      this.problems.push(`sequence ${sequence} belongs to ${this.#changes.get(sequence)} and to ${row}`)
    }
    this.#changes.set(sequence, row)
    this.state.sequence = Math.max(this.state.sequence, sequence)
  }

  async readChanges(): Promise<void> {
    for await (const page of scanEntries(this.#records.store, this.#records.keys.kind('s'))) {
      for (const [key, value] of page) {
        const sequence = ShardKeys.sequence(key)
        const row = JSON.stringify(decodeChange(value))
        if (this.#changes.get(sequence) !== row) {
          this.problems.push(`change ${sequence} is ${row}, not ${this.#changes.get(sequence)}`)
        }
        this.#changes.delete(sequence)
      }
    }
    for (const [sequence, row] of this.#changes) this.problems.push(`change ${sequence} is missing: ${row}`)
  }

  async readBodies(): Promise<void> {
    for await (const page of scanEntries(this.#records.store, this.#records.keys.kind('b'), { values: false })) {
      for (const [key] of page) {
        const sequence = ShardKeys.sequence(key)
        if (ShardKeys.bodyChunk(key) > 0) continue
        if (!this.#bodies.delete(sequence)) this.problems.push(`the body at ${sequence} belongs to no revision`)
        const { attachments = [] } = await this.#records.body(sequence) ?? {}
        const place = { prefix: this.#records.keys.prefix, sequence }
        for (const { name, blob } of attachments) {
          if (this.#records.store.getSync(blobKeys.reference(blob, place)) === undefined) {
            this.problems.push(`the body at ${sequence} has no reference to the content of ${name}`)
          }
        }
      }
    }
    for (const [sequence, id] of this.#bodies) this.problems.push(`document ${id}: its body at ${sequence} is missing`)
  }

  compareState(): void {
    const stored = this.#records.state()
    for (const name of ['documentCount', 'deletedCount', 'activeBytes', 'externalBytes'] as const) {
      if (stored[name] !== this.state[name]) this.problems.push(`${name} is ${stored[name]}, not ${this.state[name]}`)
    }
    // A purge takes a sequence but may leave no row.
    if (stored.sequence < this.state.sequence
      || (stored.sequence > this.state.sequence && stored.purgeSequence === 0)) {
      this.problems.push(`the sequence is ${stored.sequence}, not ${this.state.sequence}`)
    }
  }
}
