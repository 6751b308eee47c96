import type { CallContext, DocumentEdit, DocumentRevision, ShardId } from '@sectional/core'
import { revisionHash } from '@sectional/core'
import { ManualClock, MemoryBlobStorage, MemoryMachine, MemoryStorage, SeededRandom } from '@sectional/runtime'
import type { BlobStorage, Clock, Log, Metrics, Storage } from '@sectional/runtime'
import type { ShardRuntime } from '../src/index.ts'

export const context: CallContext = { timeoutMs: 10_000 }

export const wholeRange = { begin: 0, end: 0xffffffff }
export const shardA: ShardId = { incarnation: 'aaaa', range: wholeRange }
export const shardB: ShardId = { incarnation: 'aaaa', range: { begin: 0, end: 0x7fffffff } }

export const silentLog: Log = {
  debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silentLog,
}

export const noMetrics: Metrics = {
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {}, add: () => {} }),
  histogram: () => ({ observe: () => {} }),
  onCollect: () => {},
  render: async () => '',
  samples: async () => [],
}

/** A seeded memory runtime with the effects that shards use. */
export function shardRuntime(
  storage: Storage = new MemoryStorage(), clock: Clock = new ManualClock(), seed = 1,
  blobs: BlobStorage = new MemoryBlobStorage(),
): ShardRuntime {
  const machine = new MemoryMachine(clock)
  return { storage, blobs, clock, random: new SeededRandom(seed), metrics: noMetrics, log: silentLog, machine }
}

export function json(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

export function edit(id: string, parent: string | null, value: unknown, deleted = false): DocumentEdit {
  const body = json(value)
  return { id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }) }
}

export function revision(id: string, path: readonly string[], value: unknown, deleted = false): DocumentRevision {
  return { id, path: { start: path.length, ids: path }, deleted, body: json(value) }
}

export async function collect<Row>(pages: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}
