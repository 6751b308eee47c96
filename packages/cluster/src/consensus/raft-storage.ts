/**
 * The consensus core's part of the `control` store. Keys: `h` hard state, `s` what the snapshot is, `c` + number
 * its chunks, `l` + index an entry; numbers in keys by `keyWord` and `keyNumber`, so that entries lie in order. Every value carries a
 * checksum (the chunks one together, in `s`): a voter that takes a flipped bit for its vote, or for an entry that others
 * have committed, would break what the log promises, so a node does not start on a damaged log (`DamagedControlStoreError`).
 */
import { crc32 } from 'node:zlib'
import type { LogEntry, VotingConfiguration } from '@sectional/core'
import { keyNumber, keyWord, readKeyNumber, sealBytes, sealRecord, unsealed } from '@sectional/runtime'
import type { Store, WriteBatch } from '@sectional/runtime'
import { DamagedControlStoreError, readJson, writeJson } from '../control/control-records.ts'
import { emptyConfiguration, encodeConfiguration } from './configuration.ts'
import { RaftLog } from './raft-log.ts'
import type { HardState, Persist, RaftSnapshot } from './raft-work.ts'

/** Values over 1 MB do not belong in LevelDB (design.md section 5). */
const chunkBytes = 256 * 1024
const entryPage = 512
/** Kind and term, behind the checksum. */
const entryHeaderBytes = 9
const entryKinds = ['command', 'configuration', 'noop'] as const

interface SnapshotRecord {
  readonly index: number
  readonly term: number
  readonly configuration: VotingConfiguration
  readonly bytes: number
  readonly crc32: number
  /** Where the stored log begins: the entry before its first one. */
  readonly baseIndex: number
  readonly baseTerm: number
}

export interface StoredRaft { readonly hardState: HardState; readonly snapshot: RaftSnapshot; readonly log: RaftLog }

const emptySnapshot: RaftSnapshot = { index: 0, term: 0, configuration: emptyConfiguration, state: new Uint8Array(0) }

export class RaftStorage {
  private readonly store: Store
  private firstIndex = 1
  private lastIndex = 0
  private chunks = 0

  constructor(store: Store) {
    this.store = store
  }

  /** @throws DamagedControlStoreError; Error that names what is wrong when the stored state does not hang together */
  async load(): Promise<StoredRaft> {
    const hardState = readJson<HardState>('the hard state (term and vote)', this.store.getSync(hardStateKey)) ?? { term: 0, vote: null, commit: 0 }
    const record = readJson<SnapshotRecord>('the record of the snapshot', this.store.getSync(snapshotKey))
    const snapshot = record ? await this.loadSnapshot(record) : emptySnapshot
    const entries = await this.loadEntries()
    const log = new RaftLog(record?.baseIndex ?? 0, record?.baseTerm ?? 0, entries)
    if (log.lastIndex < snapshot.index) throw new Error(`control store: the log ends at ${log.lastIndex}, before the snapshot at ${snapshot.index}`)
    this.firstIndex = log.baseIndex + 1
    this.lastIndex = log.lastIndex
    return { hardState, snapshot, log }
  }

  /** Adds the first state of a new cluster, with this node as its one voter, to a batch. */
  static bootstrap(batch: WriteBatch, node: string): void {
    const payload = encodeConfiguration({ voters: [node], learners: [] })
    batch.put(hardStateKey, writeJson({ term: 1, vote: null, commit: 1 } satisfies HardState))
    batch.put(entryKey(1), encodeEntry({ index: 1, term: 1, kind: 'configuration', payload }))
  }

  /** Durable when resolved. `also` adds to the same atomic write. */
  async write(persist: Persist, also: (batch: WriteBatch) => void = () => {}): Promise<void> {
    const { hardState, snapshot, entries, lastIndex } = persist
    await this.store.write(batch => {
      also(batch)
      batch.put(hardStateKey, writeJson(hardState))
      if (snapshot) {
        for (let index = this.firstIndex; index <= this.lastIndex; index += 1) batch.delete(entryKey(index))
        this.putSnapshot(batch, snapshot, snapshot.index, snapshot.term)
      } else {
        for (let index = lastIndex + 1; index <= this.lastIndex; index += 1) batch.delete(entryKey(index))
      }
      for (const entry of entries) batch.put(entryKey(entry.index), encodeEntry(entry))
    })
    if (snapshot) this.firstIndex = snapshot.index + 1
    this.lastIndex = lastIndex
  }

  /** Stores a snapshot of this node's own and drops the entries up to `base`. */
  async writeSnapshot(snapshot: RaftSnapshot, base: { readonly index: number; readonly term: number }): Promise<void> {
    await this.store.write(batch => {
      for (let index = this.firstIndex; index <= base.index; index += 1) batch.delete(entryKey(index))
      this.putSnapshot(batch, snapshot, base.index, base.term)
    })
    this.firstIndex = Math.max(this.firstIndex, base.index + 1)
  }

  private putSnapshot(batch: WriteBatch, snapshot: RaftSnapshot, baseIndex: number, baseTerm: number): void {
    const { index, term, configuration, state } = snapshot
    const count = Math.ceil(state.length / chunkBytes)
    for (let chunk = 0; chunk < count; chunk += 1) batch.put(chunkKey(chunk), state.slice(chunk * chunkBytes, (chunk + 1) * chunkBytes))
    for (let chunk = count; chunk < this.chunks; chunk += 1) batch.delete(chunkKey(chunk))
    batch.put(snapshotKey, writeJson({ index, term, configuration, bytes: state.length, crc32: crc32(state), baseIndex, baseTerm } satisfies SnapshotRecord))
    this.chunks = count
  }

  private async loadSnapshot(record: SnapshotRecord): Promise<RaftSnapshot> {
    this.chunks = Math.ceil(record.bytes / chunkBytes)
    const parts = await this.store.getMany(Array.from({ length: this.chunks }, (_, chunk) => chunkKey(chunk)))
    const state = new Uint8Array(Buffer.concat(parts.map(part => part ?? new Uint8Array(0))))
    if (state.length !== record.bytes || crc32(state) !== record.crc32) throw new DamagedControlStoreError(`the checksum of the snapshot at ${record.index} differs`)
    return { index: record.index, term: record.term, configuration: record.configuration, state }
  }

  private async loadEntries(): Promise<LogEntry[]> {
    const iterator = this.store.iterate({ gte: entryKey(0), lt: entryKey(Number.MAX_SAFE_INTEGER) })
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

const hardStateKey = 'h'
const snapshotKey = 's'

function chunkKey(chunk: number): string {
  return `c${keyWord(chunk)}`
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
  if (bytes === undefined || kind === undefined || bytes.length < entryHeaderBytes) throw new DamagedControlStoreError(`the checksum of log entry ${index} differs`)
  return { index, term: Number(Buffer.from(bytes.subarray(1, entryHeaderBytes)).readBigUInt64BE(0)), kind, payload: bytes.slice(entryHeaderBytes) }
}
