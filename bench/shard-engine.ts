/**
 * Measures the engine alone, compared with bare classic-level that writes the same bodies in synced batches: run `node
 * --conditions=sectional-source bench/shard-engine.ts [documents=20000]` (`--expose-gc` for memory) on an idle machine.
 * Prints wall time and CPU time in microseconds per operation.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import type { CallContext, DocumentEdit, ShardId } from '@sectional/core'
import { revisionHash } from '@sectional/core'
import { LevelStorage, MemoryBlobStorage, MemoryMachine, SeededRandom } from '@sectional/runtime'
import type { Clock, Log, Metrics } from '@sectional/runtime'
import { ShardHost } from '@sectional/shard'

const documents = Number(process.argv[2] ?? 20_000)
const bulk = 1_000
const writers = 64
const context: CallContext = { timeoutMs: 60_000 }
const shard: ShardId = { incarnation: 'bench', range: { begin: 0, end: 0xffffffff } }
const text = 'lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod '.repeat(14)

const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => log }
const metrics: Metrics = {
  counter: () => ({ add: () => {} }),
  gauge: () => ({ set: () => {}, add: () => {} }),
  histogram: () => ({ observe: () => {} }),
  onCollect: () => {},
  render: async () => '',
  samples: async () => [],
}
const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (ms, callback) => {
    const timer = setTimeout(callback, ms)
    return { cancel: () => clearTimeout(timer) }
  },
  setImmediate: callback => { setImmediate(callback) },
}

function edits(count: number, name: string): DocumentEdit[] {
  const random = new SeededRandom(count)
  return Array.from({ length: count }, (_, index) => {
    const body = Buffer.from(JSON.stringify({ name, index, text }))
    return {
      id: Buffer.from(random.bytes(16)).toString('hex'), parent: null, deleted: false, body,
      revisionHash: revisionHash({ deleted: false, parent: null, body }),
    }
  })
}

async function measured(label: string, count: number, run: () => Promise<void>): Promise<number> {
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  await run()
  const wall = (performance.now() - before) * 1000 / count
  const cpu = process.cpuUsage(cpuBefore)
  const cpuUs = (cpu.user + cpu.system) / count
  const [wallText, cpuText] = [wall, cpuUs].map(us => `${us.toFixed(1).padStart(6)} us`)
  console.log(`  ${label.padEnd(46)} wall ${wallText}  cpu ${cpuText}`)
  return wall
}

async function pooled(count: number, workers: number, one: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(Array.from({ length: workers }, async () => {
    while (next < count) await one(next++)
  }))
}

async function bare(directory: string): Promise<number> {
  const db = new ClassicLevel<Uint8Array, Uint8Array>(join(directory, 'bare'), {
    keyEncoding: 'view', valueEncoding: 'view', writeBufferSize: 16 << 20, cacheSize: 16 << 20,
  })
  await db.open()
  const all = edits(documents, 'bare')
  const wall = await measured(`bare classic-level, synced batches of ${bulk}`, documents, async () => {
    for (let start = 0; start < documents; start += bulk) {
      const batch = db.batch()
      for (const { id, body } of all.slice(start, start + bulk)) batch.put(Buffer.from(id), body)
      await batch.write({ sync: true })
    }
  })
  const one = edits(Math.min(documents, 2_000), 'bare singles')
  await measured('bare classic-level, one synced put at a time', one.length, async () => {
    for (const { id, body } of one) await db.put(Buffer.from(id), body, { sync: true })
  })
  await db.close()
  return wall
}

async function engine(directory: string, bareWall: number): Promise<void> {
  const host = await ShardHost.open({
    storage: new LevelStorage({ directory }), blobs: new MemoryBlobStorage(), clock, random: new SeededRandom(1),
    metrics, log, machine: new MemoryMachine(clock),
  })
  const replica = await host.create(shard)
  const all = edits(documents, 'bulk')
  const bulkWall = await measured(`bulk of ${bulk} new documents`, documents, async () => {
    for (let start = 0; start < documents; start += bulk) {
      await replica.updateDocuments({ edits: all.slice(start, start + bulk), revsLimit: 1000 }, context)
    }
  })
  console.log(`  ${'... as a part of bare classic-level'.padEnd(46)} ${(bareWall / bulkWall).toFixed(2)}`)
  const singles = edits(documents + 1, 'single')
  await measured(
    `new documents, one a call, ${writers} writers`, documents,
    () =>
      pooled(
        documents, writers, index => replica.updateDocuments({ edits: [singles[index]!], revsLimit: 1000 }, context),
      ),
  )
  await measured(`updates, one a call, ${writers} writers`, documents, () => pooled(documents, writers, index => {
    const { id, revisionHash: hash, body } = singles[(index * 7919) % documents]!
    return replica.updateDocuments(
      {
        edits: [{ id, parent: `1-${hash}`, deleted: false, body, revisionHash: `${index}`.padStart(32, '0') }],
        revsLimit: 1000,
      },
      context,
    )
  }))
  await measured(`revisions from another replica, ${bulk} a call`, documents, async () => {
    for (let start = 0; start < documents; start += bulk) {
      const revisions = all.slice(start, start + bulk)
        .map(({ id, body }) => ({ id: `r${id}`, path: { start: 1, ids: ['ab'.repeat(16)] }, deleted: false, body }))
      await replica.storeRevisions({ revisions, revsLimit: 1000 }, context)
    }
  })
  await measured('open at random', documents, async () => {
    for (let index = 0; index < documents; index++) {
      await replica.openDocument({ id: all[(index * 7919) % documents]!.id, body: true, tree: false }, context)
    }
  })
  await measured('open at random, leaves only', documents, async () => {
    for (let index = 0; index < documents; index++) {
      await replica.openDocument({ id: all[(index * 7919) % documents]!.id, body: false, tree: false }, context)
    }
  })
  await measured('scan of changes', documents * 3, async () => {
    for await (const _ of replica.scanChanges({ since: 0, descending: false, body: false, locals: true }, context)) {
      continue
    }
  })
  await measured('scan of changes with bodies', documents * 3, async () => {
    for await (const _ of replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, context)) {
      continue
    }
  })
  await measured('scan of documents', documents * 3, async () => {
    for await (const _ of replica.scanDocuments({ descending: false, body: false, leaves: false }, context)) continue
  })
  await measured('digest of 256 buckets', documents * 3, async () => {
    await replica.upkeep.digestDocuments(256, context)
  })
  await host.close()
}

async function manyShards(directory: string): Promise<void> {
  const count = 2_000
  const open = (): Promise<ShardHost> => ShardHost.open({
    storage: new LevelStorage({ directory: join(directory, 'many') }), blobs: new MemoryBlobStorage(), clock,
    random: new SeededRandom(1), metrics, log, machine: new MemoryMachine(clock),
  })
  const shards = Array.from(
    { length: count }, (_, index): ShardId => ({ incarnation: `db${index}`, range: shard.range }),
  )
  global.gc?.()
  const before = process.memoryUsage().heapUsed
  let host = await open()
  await measured(`creating ${count} shards`, count, async () => {
    await Promise.all(shards.map(each => host.create(each)))
  })
  await host.close()
  await measured(`reopening a store of ${count} shards`, count, async () => { host = await open() })
  for (const each of shards) await host.replica(each)!.upkeep.replicaInfo(context)
  global.gc?.()
  if (global.gc !== undefined) {
    console.log(`  memory of an open shard: ${((process.memoryUsage().heapUsed - before) / count).toFixed(0)} bytes`)
  }
  await measured(`dropping ${count} shards`, count, async () => {
    await Promise.all(shards.map(each => host.drop(each)))
    await host.reclaimed()
  })
  await host.close()
}

const directory = mkdtempSync(join(tmpdir(), 'shard-engine-'))
await manyShards(directory)
await engine(directory, await bare(directory))
rmSync(directory, { recursive: true })
