/**
 * Measures the cost of keys that represent bytes in classic-level, for docs/decisions/0010-index-store.md: run `node
 * bench/index-keys.ts [rows=200000] [rounds=3] [part of a form's name]`. Each form runs in its own processes, in turns.
 * A row is like a row of a view: a prefix, a sort key, the document's id, and a value of 60 bytes.
 * Prints CPU microseconds per row (including LevelDB's threads) for writing rows in random order in batches of 1,000,
 * for scanning all rows in pages of 128, and for ranges of 100 rows at random positions; and the bytes of a row on
 * disk. The best round of each is reported.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ClassicLevel } from 'classic-level'

type Key = string | Uint8Array

/** How the bytes of a sort key are converted to a key of the store with the same order. */
interface Form {
  readonly name: string
  readonly encoding: 'utf8' | 'view'
  readonly encode: (bytes: Buffer) => Key
  /** Converts a key back to bytes; absent when readers compare the key as it is. */
  readonly decode?: (key: string) => Uint8Array
}

const forms: readonly Form[] = [
  { name: 'bytes as Buffers', encoding: 'view', encode: bytes => bytes },
  { name: 'a character for each byte', encoding: 'utf8', encode: bytes => bytes.toString('latin1') },
  {
    name: 'a character for each byte, to bytes again', encoding: 'utf8', encode: bytes => bytes.toString('latin1'),
    decode: key => Buffer.from(key, 'latin1'),
  },
  { name: 'seven bits a character', encoding: 'utf8', encode: sevenBits },
  { name: 'hexadecimal digits', encoding: 'utf8', encode: bytes => bytes.toString('hex') },
]

/**
 * Numbers have a type and eight random bytes. Texts have the weights that ICU assigns to Latin letters, and two more.
 */
const kinds = { texts: textKey, numbers: numberKey }
type Kind = keyof typeof kinds
const [rows = '200000', rounds = '3', part = ''] = process.argv.slice(2)
const batchRows = 1_000
const pageRows = 128
const rangeRows = 100
const ranges = 1_000
const value = Buffer.alloc(60, 'value ')

function random(seed: number): () => number {
  let state = seed
  return () => {
    state = Math.imul(state ^ state >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0
    return (state ^ state >>> 13) >>> 0
  }
}

function textKey(next: () => number): number[] {
  const letters = Array.from({ length: 12 }, () => 0x2a + next() % 52)
  return [4, ...letters, 1, 17, 1, 17, 0]
}

function numberKey(next: () => number): number[] {
  return [3, ...Array.from({ length: 8 }, () => next() >>> 8 & 0xff), 0]
}

function sortKeys(kind: Kind, count: number): Buffer[] {
  const next = random(7)
  const prefix = [0, 0, 0, 1, 0x72]
  return Array.from({ length: count }, (_, index) => {
    const id = `doc-${String(index).padStart(8, '0')}`
    return Buffer.concat([Buffer.from([...prefix, ...kinds[kind](next)]), Buffer.from(id)])
  })
}

function sevenBits(bytes: Buffer): string {
  const codes = Buffer.allocUnsafe(Math.ceil(bytes.length * 8 / 7))
  let at = 0
  let bits = 0
  let held = 0
  for (let index = 0; index < bytes.length; index++) {
    held = held << 8 | bytes[index]!
    bits += 8
    while (bits >= 7) {
      bits -= 7
      codes[at++] = held >>> bits & 0x7f
    }
    held &= (1 << bits) - 1
  }
  if (bits > 0) codes[at++] = held << 7 - bits & 0x7f
  return codes.toString('latin1', 0, at)
}

/** Returns the CPU microseconds of all threads of this process during the work. */
async function cpu(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function measure({ encoding, encode, decode }: Form, kind: Kind): Promise<Readonly<Record<string, number>>> {
  const directory = mkdtempSync(join(tmpdir(), 'index-keys-'))
  const db = new ClassicLevel<Key, Uint8Array>(directory, {
    keyEncoding: encoding, valueEncoding: 'view', writeBufferSize: 16 << 20, cacheSize: 16 << 20,
  })
  let read = 0
  const readPages = async (gte: Key, lt: Key, limit: number): Promise<void> => {
    const iterator = db.iterator({ gte, lt, limit })
    const count = Math.min(limit, pageRows)
    for (let page = await iterator.nextv(count); page.length > 0; page = await iterator.nextv(count)) {
      for (const [key] of page) if (decode !== undefined) decode(key as string)
      read += page.length
    }
    await iterator.close()
  }
  try {
    await db.open()
    const keys = sortKeys(kind, Number(rows))
    const write = await cpu(async () => {
      for (let at = 0; at < keys.length; at += batchRows) {
        const batch = db.batch()
        for (const key of keys.slice(at, at + batchRows)) batch.put(encode(key), value)
        await batch.write()
      }
    })
    const [first, last] = [encode(Buffer.from([0])), encode(Buffer.from([0x7f]))]
    await db.compactRange(first, last)
    const scan = await cpu(() => readPages(first, last, Infinity))
    if (read !== keys.length) throw new Error(`${read} of ${keys.length} rows were read`)
    const next = random(11)
    read = 0
    const range = await cpu(async () => {
      for (let index = 0; index < ranges; index++) await readPages(encode(keys[next() % keys.length]!), last, rangeRows)
    })
    const rangeCount = read
    await db.close()
    const disk = readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
    return { write: write / keys.length, scan: scan / keys.length, range: range / rangeCount, disk: disk / keys.length }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

type Figures = Readonly<Record<string, number>>

function measuredApart(name: string, kind: Kind): Figures {
  const env = { ...process.env, INDEX_KEYS_FORM: name, INDEX_KEYS_KIND: kind }
  const output = execFileSync(process.execPath, [fileURLToPath(import.meta.url), rows], { env, encoding: 'utf8' })
  return JSON.parse(output) as Figures
}

function leastOf(one: Figures, other: Figures): Figures {
  return Object.fromEntries(Object.entries(one).map(([what, figure]) => [what, Math.min(figure, other[what]!)]))
}

if (process.env['INDEX_KEYS_FORM'] !== undefined) {
  const form = forms.find(({ name }) => name === process.env['INDEX_KEYS_FORM'])!
  process.stdout.write(JSON.stringify(await measure(form, process.env['INDEX_KEYS_KIND'] as Kind)))
} else {
  for (const kind of Object.keys(kinds) as Kind[]) {
    const best = new Map<string, Figures>()
    for (let round = 0; round < Number(rounds); round++) {
      for (const { name } of forms.filter(form => form.name.includes(part))) {
        const figures = measuredApart(name, kind)
        best.set(name, leastOf(figures, best.get(name) ?? figures))
      }
    }
    process.stdout.write(`${kind}${' '.repeat(44 - kind.length)}write   scan  range  disk bytes\n`)
    for (const [name, { write, scan, range, disk }] of best) {
      const times = [write, scan, range].map(figure => figure!.toFixed(2).padStart(7)).join('')
      process.stdout.write(`${name.padEnd(42)}${times}${disk!.toFixed(0).padStart(8)}\n`)
    }
  }
}
