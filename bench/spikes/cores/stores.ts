/**
 * Spike of docs/decisions/0011-more-than-one-core.md: the cost of several stores in one process, which a process has
 * when the data directory was created for more processes than run now. `node --conditions=sectional-source
 * bench/spikes/cores/stores.ts [documents=40000]` measures 8 shards in 1, 2, 4 and 8 stores of one process. Prints wall
 * time and CPU time of all threads in microseconds per document, and the resident memory afterwards.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { revisionHash, type DocumentEdit, type ShardId, type ShardReplica } from '@sectional/core'
import { createMemoryRuntime, LevelStorage, MemoryLog, RealClock, RealRandom } from '@sectional/runtime'
import { ShardHost } from '@sectional/shard'
import { documentBody, documentId } from '../../documents.ts'

const documents = Number(process.argv[2] ?? 40_000)
const shardCount = 8
const storeCounts = [1, 8, 2, 4, 1, 8, 2, 4]
const writers = 64
const bulkEdits = 125
const bodyBytes = 1000
const mebibyte = 1024 * 1024
/** Write buffers of all stores together, as large as the one of a node's single store today. */
const writeBufferBytes = 64 * mebibyte
const context = { timeoutMs: 60_000 }

function edits(count: number): DocumentEdit[] {
  return Array.from({ length: count }, (_, number) => {
    const body = Buffer.from(documentBody(number, bodyBytes))
    const first = { parent: null, deleted: false, body }
    return { id: documentId('', number, 'random'), ...first, revisionHash: revisionHash(first) }
  })
}

/** Writes `all` to the shards in turn, with a fixed number of edits per call and of concurrent calls. */
async function write(
  replicas: readonly ShardReplica[], all: readonly DocumentEdit[], each: number, parallel: number,
): Promise<void> {
  let next = 0
  await Promise.all(Array.from({ length: parallel }, async () => {
    while (next < all.length) {
      const from = next
      next += each
      const replica = replicas[(from / each) % replicas.length]!
      await replica.updateDocuments({ edits: all.slice(from, from + each), revsLimit: 1000 }, context)
    }
  }))
}

async function measured(count: number, work: () => Promise<void>): Promise<string> {
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await work()
  const { user, system } = process.cpuUsage(cpuBefore)
  const tookUs = (performance.now() - startedAt) * 1000
  return `${(tookUs / count).toFixed(1)} us, CPU ${((user + system) / count).toFixed(1)} us`
}

async function measureStores(stores: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sectional-stores-'))
  const hosts = await Promise.all(Array.from({ length: stores }, (_, at) => ShardHost.open({
    ...createMemoryRuntime({ log: new MemoryLog() }), clock: new RealClock(), random: new RealRandom(),
    storage: new LevelStorage({ directory: join(directory, String(at)) }),
  }, { store: { cacheBytes: writeBufferBytes / stores, writeBufferBytes: writeBufferBytes / stores } })))
  const replicas = await Promise.all(Array.from({ length: shardCount }, (_, at) => {
    const shard: ShardId = { incarnation: `database${at}`, range: { begin: 0, end: 0xffffffff } }
    return hosts[at % stores]!.create(shard)
  }))
  const bulks = edits(documents)
  const bulk = await measured(documents, () => write(replicas, bulks, bulkEdits, shardCount))
  const singles = edits(documents)
  const single = await measured(documents, () => write(replicas, singles, 1, writers))
  const resident = Math.round(process.memoryUsage.rss() / mebibyte)
  console.log(`${stores} stores: bulks ${bulk}; one a call ${single}; ${resident} MiB`)
  for (const host of hosts) await host.close()
  rmSync(directory, { recursive: true })
}

for (const stores of storeCounts) await measureStores(stores)
