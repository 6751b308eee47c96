/**
 * Measures the layouts of docs/decisions/0001-storage-layout.md on bare classic-level: run `node
 * bench/storage-layout.ts [documents=40000] [cacheMiB=16] [part of a layout's name]` on an idle machine. Prints
 * microseconds per operation: wall time of the calls, and CPU time including the compactions that they cause; and the
 * bytes that LevelDB wrote per byte of documents (write amplification).
 */
import { readFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { ClassicLevel } from 'classic-level'

type Db = ClassicLevel<Uint8Array, Uint8Array>
interface Batch { put(key: Uint8Array, value: Uint8Array): void; del(key: Uint8Array): void }

interface Layout {
  readonly name: string
  create(batch: Batch, shard: number, sequence: number, id: string, body: Uint8Array): void
  update(
    batch: Batch, shard: number, oldSequence: number, sequence: number, id: string, body: Uint8Array,
    oldBody: Uint8Array,
  ): void
  read(db: Db, shard: number, id: string): Uint8Array
  changesRange(shard: number): { gte: Uint8Array; lt: Uint8Array }
}

const documents = Number(process.argv[2] ?? 40_000)
const cacheBytes = Number(process.argv[3] ?? 16) << 20
const nameContains = process.argv[4] ?? ''
const shards = 8
const batchSize = 1_000
const bodyBytes = 1_000

function key(shard: number, kind: string, rest: string | number): Buffer {
  if (typeof rest === 'number') {
    const bytes = Buffer.allocUnsafe(11)
    bytes[0] = 1
    bytes[1] = shard
    bytes[2] = kind.charCodeAt(0)
    bytes.writeUInt32BE(Math.floor(rest / 0x1_0000_0000), 3)
    bytes.writeUInt32BE(rest >>> 0, 7)
    return bytes
  }
  return Buffer.from(`\x01${String.fromCharCode(shard)}${kind}${rest}`, 'latin1')
}

const treeBytes = 30

function idRecord(sequence: number, ...more: Uint8Array[]): Buffer {
  const head = Buffer.alloc(treeBytes + 10)
  head.writeDoubleBE(sequence, 0)
  return more.length === 0 ? head : Buffer.concat([head, ...more])
}

function changeRecord(id: string, ...more: Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from(id), Buffer.alloc(20), ...more])
}

function checked(body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(body.length + 4)
  bytes.writeUInt32BE(crc32(body), 0)
  bytes.set(body, 4)
  return bytes
}

const sequenceOf = (record: Uint8Array): number =>
  Buffer.from(record.buffer, record.byteOffset, record.length).readDoubleBE(0)

const separate: Layout = {
  name: 'separate bodies (i, s, b)',
  create(batch, shard, sequence, id, body) {
    batch.put(key(shard, 'i', id), idRecord(sequence))
    batch.put(key(shard, 's', sequence), changeRecord(id))
    batch.put(key(shard, 'b', sequence), checked(body))
  },
  update(batch, shard, oldSequence, sequence, id, body) {
    batch.del(key(shard, 's', oldSequence))
    this.create(batch, shard, sequence, id, body, )
  },
  read: (db, shard, id) => db.getSync(key(shard, 'b', sequenceOf(db.getSync(key(shard, 'i', id))!)))!,
  changesRange: shard => ({ gte: key(shard, 's', 0), lt: key(shard, 't', 0) }),
}

const inline: Layout = {
  name: 'winner inline in the id record (i, s; b for what it replaces)',
  create(batch, shard, sequence, id, body) {
    batch.put(key(shard, 'i', id), idRecord(sequence, checked(body)))
    batch.put(key(shard, 's', sequence), changeRecord(id))
  },
  update(batch, shard, oldSequence, sequence, id, body, oldBody) {
    batch.del(key(shard, 's', oldSequence))
    batch.put(key(shard, 'b', oldSequence), checked(oldBody))
    this.create(batch, shard, sequence, id, body)
  },
  read: (db, shard, id) => db.getSync(key(shard, 'i', id))!.subarray(treeBytes + 10),
  changesRange: separate.changesRange,
}

const inLog: Layout = {
  name: 'body in the changes log (i, s)',
  create(batch, shard, sequence, id, body) {
    batch.put(key(shard, 'i', id), idRecord(sequence))
    batch.put(key(shard, 's', sequence), changeRecord(id, checked(body)))
  },
  update(batch, shard, oldSequence, sequence, id, body, oldBody) {
    batch.del(key(shard, 's', oldSequence))
    batch.put(key(shard, 'b', oldSequence), checked(oldBody))
    this.create(batch, shard, sequence, id, body)
  },
  read: (db, shard, id) => db.getSync(key(shard, 's', sequenceOf(db.getSync(key(shard, 'i', id))!)))!,
  changesRange: separate.changesRange,
}

const bare: Layout = {
  name: 'bare: one put of id -> body (the floor)',
  create(batch, shard, _sequence, id, body) { batch.put(key(shard, 'i', id), body) },
  update(batch, shard, _oldSequence, _sequence, id, body) { batch.put(key(shard, 'i', id), body) },
  read: (db, shard, id) => db.getSync(key(shard, 'i', id))!,
  changesRange: shard => ({ gte: key(shard, 'i', ''), lt: key(shard, 'j', '') }),
}

/** Returns the bytes that this process has written through the file system. */
function writtenBytes(): number {
  return Number(/wchar: (\d+)/.exec(readFileSync('/proc/self/io', 'latin1'))?.[1] ?? Number.NaN)
}

/** Resolves when LevelDB's background thread has nothing more to write. */
async function settled(): Promise<void> {
  for (let before = -1; before !== writtenBytes();) {
    before = writtenBytes()
    await setTimeout(300)
  }
}

/** A cheap repeatable stream of pseudo-random numbers (xorshift32). */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}

function body(next: () => number): Buffer {
  const words: string[] = []
  for (let length = 0; length < bodyBytes - 20; length += 11) {
    words.push(next().toString(36).padStart(8, '0').slice(0, 8))
  }
  return Buffer.from(JSON.stringify({ text: words.join('","') }).slice(0, bodyBytes - 2) + '"}')
}

async function measured(label: string, count: number, run: () => Promise<void>): Promise<void> {
  const writtenBefore = writtenBytes()
  const cpuBefore = process.cpuUsage()
  const before = performance.now()
  await run()
  const wall = (performance.now() - before) * 1000 / count
  await settled()
  const cpu = process.cpuUsage(cpuBefore)
  const written = writtenBytes() - writtenBefore
  const row = [label.padEnd(34), `wall ${wall.toFixed(1)} us`, `cpu ${((cpu.user + cpu.system) / count).toFixed(1)} us`]
  if (written > count * 100) row.push(`written ${(written / count / bodyBytes).toFixed(2)} x`)
  console.log('  ' + row.join('  '))
}

async function tryLayout(layout: Layout): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'storage-layout-'))
  const db: Db = new ClassicLevel(folder, {
    keyEncoding: 'view', valueEncoding: 'view', writeBufferSize: 16 << 20, cacheSize: cacheBytes,
  })
  await db.open()
  console.log(layout.name)
  const next = numbers(42)
  const ids = Array.from(
    { length: documents },
    () => (next().toString(16).padStart(8, '0') + next().toString(16).padStart(8, '0')).repeat(2),
  )
  const bodies = Array.from({ length: 512 }, () => body(next))
  const current = new Map<string, number>()
  const sequences = new Array<number>(shards).fill(0)
  const write = async (fill: (batch: Batch) => void): Promise<void> => {
    const batch = db.batch()
    fill(batch as unknown as Batch)
    await batch.write({ sync: true })
  }
  const shardOf = (id: string): number => Number.parseInt(id[0]!, 16) % shards
  await measured(`create, ${batchSize} a batch`, documents, async () => {
    for (let start = 0; start < documents; start += batchSize) await write(batch => {
      for (let index = start; index < Math.min(start + batchSize, documents); index++) {
        const id = ids[index]!
        const shard = shardOf(id)
        const sequence = ++sequences[shard]!
        layout.create(batch, shard, sequence, id, bodies[index % 512]!)
        current.set(id, sequence)
      }
    })
  })
  await measured('update at random, 64 a batch', documents, async () => {
    for (let start = 0; start < documents; start += 64) {
      const picked = new Set<string>()
      while (picked.size < Math.min(64, documents - start)) picked.add(ids[next() % documents]!)
      await write(batch => {
        for (const id of picked) {
          const shard = shardOf(id)
          const sequence = ++sequences[shard]!
          const oldSequence = current.get(id)!
          layout.update(batch, shard, oldSequence, sequence, id, bodies[next() % 512]!, bodies[oldSequence % 512]!)
          current.set(id, sequence)
        }
      })
    }
  })
  const reads = Math.min(documents, 40_000)
  await measured('read at random, getSync', reads, async () => {
    for (let count = 0; count < reads; count++) {
      const id = ids[next() % documents]!
      if (layout.read(db, shardOf(id), id).length < bodyBytes) throw new Error('short body')
    }
  })
  await measured('changes scan without bodies', documents, async () => {
    let rows = 0
    for (let shard = 0; shard < shards; shard++) {
      const iterator = db.iterator(layout.changesRange(shard))
      for (;;) {
        const page = await iterator.nextv(1000)
        if (page.length === 0) break
        rows += page.length
      }
      await iterator.close()
    }
    if (rows !== documents) throw new Error(`${rows} rows`)
  })
  await db.close()
  rmSync(folder, { recursive: true })
}

for (const layout of [bare, separate, inline, inLog]) if (layout.name.includes(nameContains)) await tryLayout(layout)
