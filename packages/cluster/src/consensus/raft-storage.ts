/**
 * Stores the state of the consensus core in the node's `control` store. Key `h` holds the hard state, `s` the record of
 * the snapshot, `c` + slot and number a chunk of a snapshot, `l` + index a log entry. Numbers in keys are written by
 * `keyWord` and `keyNumber`, so that keys are in numeric order.
 *
 * The chunks of a snapshot are written in several batches to a slot of their own. The snapshot then takes effect when
 * `s` is written, in one batch; the chunks and entries that it replaces are removed afterwards, or at the next start.
 *
 * Every value carries a checksum; the chunks share one, which is in `s`. A voter that misread its vote or a committed
 * entry because of a flipped bit would break the guarantees of the log, so a node does not start on a damaged log
 * (`DamagedControlStoreError`).
 */
import type { LogEntry, VotingConfiguration } from '@sectional/core'
import { keyNumber, keyWord, readKeyNumber, sealBytes, sealRecord, unsealed } from '@sectional/runtime'
import type { Range, Store, WriteBatch } from '@sectional/runtime'
import { DamagedControlStoreError, readJson, writeJson } from './sealed-records.ts'
import { emptyConfiguration, encodeConfiguration } from './configuration.ts'
import { RaftLog } from './raft-log.ts'
import type { HardState, Persist, RaftSnapshot } from './raft-work.ts'
import { snapshotChecksum } from './snapshot-pieces.ts'

/** LevelDB is not made for values over 1 MB. */
const chunkBytes = 256 * 1024
/** Chunks in one batch. The limit keeps a batch from blocking the event loop or the store for long. */
const batchChunks = 4
/** Chunks of one slot. It limits a snapshot to 1 GiB. */
const slotChunks = 4096
const slots = 65_536
const entryPage = 512
/** Ranges whose removal has failed and is tried again. */
const remainsMax = 100
/** Bytes of the kind and the term, which follow the checksum. */
const entryHeaderBytes = 9
const entryKinds = ['command', 'configuration', 'noop'] as const

interface SnapshotRecord {
  readonly index: number
  readonly term: number
  readonly configuration: VotingConfiguration
  readonly bytes: number
  readonly crc32: number
  /** The slot that holds the chunks; absent: slot 0. */
  readonly slot?: number
  /** Index of the entry before the first one of the stored log. */
  readonly baseIndex: number
  readonly baseTerm: number
}

/** A snapshot whose chunks are on disk but which is not in effect yet. */
export interface StagedSnapshot { readonly snapshot: RaftSnapshot; readonly slot: number }

/** Single values of a stored log, for checkers that watch a disk while its node runs. */
export interface StoredLogView {
  readonly hardState: HardState
  /** Index of the snapshot in effect; entries up to it need not be in the log. */
  readonly snapshotIndex: number
  /** Returns the term of an entry; undefined when neither the log nor the snapshot tells it. */
  term(index: number): number | undefined
  readonly lastIndex: number
}

export interface StoredRaft { readonly hardState: HardState; readonly snapshot: RaftSnapshot; readonly log: RaftLog }

const emptySnapshot: RaftSnapshot = {
  index: 0, term: 0, configuration: emptyConfiguration, state: new Uint8Array(0), checksum: 0,
}

export class RaftStorage {
  readonly #store: Store
  #firstIndex = 1
  #lastIndex = 0
  /** The slot of the snapshot in effect. */
  #slot = 0
  #lastSlot = 0
  /** The chunks of each snapshot that are on disk, so that a further attempt continues in the same slot. */
  readonly #written = new WeakMap<RaftSnapshot, { readonly slot: number; chunks: number }>()
  #removing: Promise<void> = Promise.resolve()
  /** The ranges that are not removed yet. */
  readonly #remains: Range[] = []

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Reads the stored state, and removes the remains of interrupted writes.
   * @throws DamagedControlStoreError when a checksum differs
   * @throws Error that names the contradiction when the parts of the stored state do not fit together
   */
  async load(): Promise<StoredRaft> {
    const hardState = readJson<HardState>('the hard state (term and vote)', this.#store.getSync(hardStateKey))
      ?? { term: 0, vote: null, commit: 0 }
    const record = readJson<SnapshotRecord>('the record of the snapshot', this.#store.getSync(snapshotKey))
    const snapshot = record ? await this.#loadSnapshot(record) : emptySnapshot
    const entries = await this.#loadEntries((record?.baseIndex ?? 0) + 1)
    const log = new RaftLog(record?.baseIndex ?? 0, record?.baseTerm ?? 0, entries)
    if (log.lastIndex < snapshot.index) {
      throw new Error(`control store: the log ends at ${log.lastIndex}, before the snapshot at ${snapshot.index}`)
    }
    this.#firstIndex = log.baseIndex + 1
    this.#lastIndex = log.lastIndex
    this.#slot = this.#lastSlot = record?.slot ?? 0
    await this.#store.clear({ gte: chunkKey(0, 0), lt: chunkKey(this.#slot, 0) })
    await this.#store.clear({ gte: chunkKey(this.#slot + 1, 0), lt: chunkKey(slots, 0) })
    await this.#store.clear({ gte: entryKey(0), lt: entryKey(this.#firstIndex) })
    return { hardState, snapshot, log }
  }

  /** @param get returns the stored value of a key */
  static view(get: (key: string) => Uint8Array | undefined): StoredLogView {
    const record = readJson<SnapshotRecord>('the record of the snapshot', get(snapshotKey))
    const { index: snapshotIndex, baseIndex } = record ?? { index: 0, baseIndex: 0 }
    const term = (index: number): number | undefined => {
      const value = get(entryKey(index))
      if (value !== undefined) return decodeEntry(entryKey(index), value).term
      return index === snapshotIndex ? record?.term : index === baseIndex ? record?.baseTerm : undefined
    }
    return {
      hardState: readJson<HardState>('the hard state', get(hardStateKey)) ?? { term: 0, vote: null, commit: 0 },
      snapshotIndex, term,
      get lastIndex() {
        let last = baseIndex
        while (get(entryKey(last + 1)) !== undefined) last++
        return Math.max(last, snapshotIndex)
      },
    }
  }

  /** Adds to a batch the first state of a new cluster, whose one voter is this node. */
  static bootstrap(batch: WriteBatch, node: string): void {
    const payload = encodeConfiguration({ voters: [node], learners: [] })
    batch.put(hardStateKey, writeJson({ term: 1, vote: null, commit: 1 } satisfies HardState))
    batch.put(entryKey(1), encodeEntry({ index: 1, term: 1, kind: 'configuration', payload }))
  }

  /** Writes the work of one batch; durable when resolved. `also` adds its operations to the same atomic write. */
  async write(persist: Persist, also: (batch: WriteBatch) => void = () => {}): Promise<void> {
    const { hardState, snapshot, entries, lastIndex } = persist
    const staged = snapshot && await this.stageSnapshot(snapshot)
    await this.#store.write(batch => {
      also(batch)
      batch.put(hardStateKey, writeJson(hardState))
      if (staged) putRecord(batch, staged, { index: staged.snapshot.index, term: staged.snapshot.term })
      for (let index = lastIndex + 1; index <= this.#lastIndex; index += 1) batch.delete(entryKey(index))
      for (const entry of entries) batch.put(entryKey(entry.index), encodeEntry(entry))
    })
    this.#lastIndex = lastIndex
    if (staged) this.#tookEffect(staged, staged.snapshot.index)
  }

  /**
   * Writes the chunks of a snapshot to a free slot, in several batches. The snapshot takes effect only with
   * `writeSnapshot`. Another call with the same snapshot continues after a call that failed.
   */
  async stageSnapshot(snapshot: RaftSnapshot): Promise<StagedSnapshot> {
    const { state } = snapshot
    const count = Math.ceil(state.length / chunkBytes)
    if (count > slotChunks) {
      throw new Error(
        `control store: a snapshot of ${state.length} bytes, at most ${slotChunks * chunkBytes} are allowed`,
      )
    }
    const written = this.#written.get(snapshot) ?? { slot: this.#freeSlot(), chunks: 0 }
    this.#written.set(snapshot, written)
    const { slot } = written
    while (written.chunks < count) {
      const end = Math.min(count, written.chunks + batchChunks)
      await this.#store.write(batch => {
        for (let chunk = written.chunks; chunk < end; chunk += 1) {
          batch.put(chunkKey(slot, chunk), state.slice(chunk * chunkBytes, (chunk + 1) * chunkBytes))
        }
      })
      written.chunks = end
    }
    return { snapshot, slot }
  }

  #freeSlot(): number {
    do this.#lastSlot = (this.#lastSlot + 1) % slots
    while (this.#lastSlot === this.#slot)
    return this.#lastSlot
  }

  /** Makes a snapshot that this node took itself take effect, and drops the entries up to `base`. */
  async writeSnapshot(staged: StagedSnapshot, base: { readonly index: number; readonly term: number }): Promise<void> {
    await this.#store.write(batch => putRecord(batch, staged, base))
    this.#tookEffect(staged, base.index)
  }

  /** Removes the chunks of a snapshot that shall not take effect and will not be staged again. */
  discard(snapshot: RaftSnapshot): void {
    const written = this.#written.get(snapshot)
    if (written) this.#removeSlot(written.slot)
  }

  /** Resolves when all removals in the background have ended. */
  idle(): Promise<void> { return this.#removing }

  /**
   * Removes in the background what the snapshot has replaced. What a failed removal leaves behind is removed together
   * with what the next snapshot replaces, or at the next start.
   */
  #tookEffect({ slot }: StagedSnapshot, baseIndex: number): void {
    const replaced = { slot: this.#slot, firstIndex: this.#firstIndex }
    this.#slot = slot
    this.#firstIndex = Math.max(this.#firstIndex, baseIndex + 1)
    this.#removeSlot(replaced.slot)
    this.#remove({ gte: entryKey(replaced.firstIndex), lt: entryKey(this.#firstIndex) })
  }

  #removeSlot(slot: number): void { this.#remove({ gte: chunkKey(slot, 0), lt: chunkKey(slot + 1, 0) }) }

  #remove(range: Range): void {
    if (this.#remains.length < remainsMax) this.#remains.push(range)
    this.#removing = this.#removing.then(() => this.#removeAll()).catch(() => {})
  }

  async #removeAll(): Promise<void> {
    while (this.#remains.length > 0) {
      await this.#store.clear(this.#remains[0]!)
      this.#remains.shift()
    }
  }

  async #loadSnapshot(record: SnapshotRecord): Promise<RaftSnapshot> {
    const { index, term, configuration, bytes, crc32: checksum, slot = 0 } = record
    const parts = await this.#store.getMany(
      Array.from({ length: Math.ceil(bytes / chunkBytes) }, (_, chunk) => chunkKey(slot, chunk)),
    )
    const state = new Uint8Array(Buffer.concat(parts.map(part => part ?? new Uint8Array(0))))
    if (state.length !== bytes || snapshotChecksum(state) !== checksum) {
      throw new DamagedControlStoreError(`the checksum of the snapshot at ${index} differs`)
    }
    return { index, term, configuration, state, checksum }
  }

  async #loadEntries(from: number): Promise<LogEntry[]> {
    const iterator = this.#store.iterate({ gte: entryKey(from), lt: entryKey(Number.MAX_SAFE_INTEGER) })
    const entries: LogEntry[] = []
    try {
      for (let page = await iterator.next(entryPage); page.length > 0; page = await iterator.next(entryPage)) {
        for (const [key, value] of page) entries.push(decodeEntry(key, value))
      }
    } finally {
      await iterator.close()
    }
    return entries
  }
}

function putRecord(
  batch: WriteBatch, { snapshot, slot }: StagedSnapshot, base: { readonly index: number; readonly term: number },
): void {
  const { index, term, configuration, state, checksum } = snapshot
  const sum = checksum ?? snapshotChecksum(state)
  batch.put(snapshotKey, writeJson({
    index, term, configuration, bytes: state.length, crc32: sum, slot, baseIndex: base.index, baseTerm: base.term,
  } satisfies SnapshotRecord))
}

const hardStateKey = 'h'
const snapshotKey = 's'

function chunkKey(slot: number, chunk: number): string {
  // The end of the last slot is greater than the greatest number that a key can hold.
  return slot === slots ? 'd' : `c${keyWord(slot * slotChunks + chunk)}`
}

function entryKey(index: number): string {
  return `l${keyNumber(index)}`
}

function encodeEntry(entry: LogEntry): Uint8Array {
  const bytes = Buffer.alloc(sealBytes + entryHeaderBytes + entry.payload.length)
  bytes.writeUInt8(entryKinds.indexOf(entry.kind), sealBytes)
  bytes.writeBigUInt64BE(BigInt(entry.term), sealBytes + 1)
  bytes.set(entry.payload, sealBytes + entryHeaderBytes)
  return new Uint8Array(sealRecord(bytes))
}

function decodeEntry(key: string, value: Uint8Array): LogEntry {
  const index = readKeyNumber(key, 1)
  const bytes = unsealed(value)
  const kind = entryKinds[bytes?.[0] ?? -1]
  if (bytes === undefined || kind === undefined || bytes.length < entryHeaderBytes) {
    throw new DamagedControlStoreError(`the checksum of log entry ${index} differs`)
  }
  return {
    index, term: Number(Buffer.from(bytes.subarray(1, entryHeaderBytes)).readBigUInt64BE(0)), kind,
    payload: bytes.slice(entryHeaderBytes),
  }
}
