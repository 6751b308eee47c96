import { spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { crc32c, maskCrc } from '../../src/storage/level/crc32c.ts'
import { LevelStorage } from '../../src/storage/storage-level.ts'
import { MemoryStorage } from '../../src/storage/storage-memory.ts'
import { lastKey } from '../../src/storage/storage.ts'
import type { Storage, Store } from '../../src/storage/storage.ts'

const keyOf = (number: number): string => `k${String(number).padStart(6, '0')}`

/** Returns how many of the numbered batches exist. Fails when a batch is missing before an existing one. */
async function prefixOf(storage: Storage): Promise<number> {
  const store = await storage.open('indexes', { synced: false })
  const iterator = store.iterate({ gte: '', lt: lastKey }, { values: false })
  const keys = (await iterator.next(1_000_000)).map(([key]) => key)
  await iterator.close()
  await store.close()
  expect(keys).to.deep.equal(keys.map((_, number) => keyOf(number)))
  return keys.length
}

/** Writes another name of the comparator into the first record of a manifest, with a right checksum. */
async function otherComparator(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.write('X', bytes.indexOf('BytewiseComparator'))
  const end = 7 + bytes.readUInt16LE(4)
  bytes.writeUInt32LE(maskCrc(crc32c(bytes, 6, end)), 0)
  await writeFile(path, bytes)
}

describe('a store whose writes are not synced', () => {
  let directory: string
  beforeEach(async () => { directory = await mkdtemp(join(tmpdir(), 'sectional-unsynced-')) })
  afterEach(() => rm(directory, { recursive: true }))

  it('has all resolved writes after its process was killed', async () => {
    const child = fileURLToPath(new URL('unsynced.child.ts', import.meta.url))
    const writer = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', child, directory])
    let output = ''
    for await (const chunk of writer.stdout) {
      output += String(chunk)
      if (output.length > 10_000) writer.kill('SIGKILL')
    }
    const resolved = output.slice(0, output.lastIndexOf('\n')).split('\n').length
    expect(resolved).to.be.above(1000)
    expect(await prefixOf(new LevelStorage({ directory }))).to.be.at.least(resolved)
  }).timeout(40_000)

  /**
   * Writes twelve batches, four of them in each block of LevelDB's log, and divides them into logs of the
   * given numbers of blocks.
   */
  async function fill(...blocks: number[]): Promise<string[]> {
    const store = await new LevelStorage({ directory }).open('indexes', { synced: false })
    for (let number = 0; number < 12; number++) {
      await store.write(batch => batch.put(`k${String(number).padStart(6, '0')}`, Buffer.alloc(8162, number + 1)))
    }
    await store.close()
    const [log] = (await readdir(join(directory, 'indexes'))).filter(name => name.endsWith('.log'))
    const first = join(directory, 'indexes', log!)
    const bytes = await readFile(first)
    expect(bytes.length).to.equal(3 * 32768)
    const paths: string[] = []
    let from = 0
    for (const [index, count] of blocks.entries()) {
      const path = index === 0 ? first : join(directory, 'indexes', `${String(1000 + index).padStart(6, '0')}.log`)
      await writeFile(path, bytes.subarray(from, from += count * 32768))
      paths.push(path)
    }
    return paths
  }

  async function spoiled(path: string, spoil: (copy: string) => Promise<void>): Promise<number> {
    const copy = await mkdtemp(join(tmpdir(), 'sectional-unsynced-'))
    await cp(directory, copy, { recursive: true })
    await spoil(path.replace(directory, copy))
    const count = await prefixOf(new LevelStorage({ directory: copy }))
    await rm(copy, { recursive: true })
    return count
  }

  it('has the batches before a gap that a failure of the machine left in its log, and none after it', async () => {
    const [log] = await fill(3)
    expect(await spoiled(log!, async () => {})).to.equal(12)
    for (const page of [0, 5, 12, 23]) {
      const zeroed = await spoiled(log!, async path => {
        const bytes = await readFile(path)
        await writeFile(path, bytes.fill(0, page * 4096, (page + 1) * 4096))
      })
      expect(zeroed).to.equal(Math.floor(page / 2))
      expect(await spoiled(log!, path => truncate(path, page * 4096 + 100))).to.equal(Math.floor(page / 2))
    }
  })

  it('has no batches of a log after one that is incomplete or missing', async () => {
    const [first, second] = await fill(1, 1, 1)
    expect(await spoiled(first!, async () => {})).to.equal(12)
    expect(await spoiled(first!, path => truncate(path, 20_000))).to.equal(2)
    expect(await spoiled(first!, path => truncate(path, 3 * 8192))).to.equal(3)
    expect(await spoiled(second!, path => truncate(path, 0))).to.equal(4)
    expect(await spoiled(second!, path => rm(path))).to.equal(4)
    expect(await spoiled(first!, path => truncate(path, 0))).to.equal(0)
  })

  it('is refused when nothing certain remains, and can be used again when it was removed', async () => {
    const storage = new LevelStorage({ directory })
    const open = (): Promise<Store> => storage.open('indexes', { synced: false })
    const filled = await open()
    for (let number = 0; number < 2000; number++) {
      await filled.write(batch => batch.put(keyOf(number), Buffer.alloc(100, number)))
    }
    await filled.compact({ gte: '', lt: lastKey })
    await filled.close()
    const folder = join(directory, 'indexes')
    const intact = await mkdtemp(join(tmpdir(), 'sectional-unsynced-'))
    await cp(folder, intact, { recursive: true })
    const names = await readdir(folder)
    const table = names.find(name => name.endsWith('.ldb'))!
    const manifest = names.find(name => name.startsWith('MANIFEST'))!
    const size = (await readFile(join(folder, table))).length
    const flip = (name: string, at: number) => async (): Promise<void> => {
      const bytes = await readFile(join(folder, name))
      bytes[at]! ^= 1
      await writeFile(join(folder, name), bytes)
    }
    const spoilers = [
      () => writeFile(join(folder, 'CURRENT'), 'nonsense'), () => rm(join(folder, 'CURRENT')),
      () => rm(join(folder, manifest)), () => rm(join(folder, table)), () => truncate(join(folder, table), size - 1),
      flip(manifest, 12), flip(table, size - 47), flip(table, size - 70), () => otherComparator(join(folder, manifest)),
    ]
    for (const spoil of spoilers) {
      await rm(folder, { recursive: true })
      await cp(intact, folder, { recursive: true })
      await spoil()
      for (const _attempt of [1, 2]) {
        const failure: unknown = await open().then(store => store.close(), (error: unknown) => error)
        expect(failure, String(spoil)).to.include({ code: 'corrupt' })
      }
      await storage.remove('indexes')
      expect(await prefixOf(storage)).to.equal(0)
    }
    await rm(intact, { recursive: true })
  })

  it('loses any number of its newest batches at a simulated crash, all unless told otherwise', async () => {
    let storage = new MemoryStorage()
    for (const lost of [0, 3, 7, undefined]) {
      storage = new MemoryStorage()
      storage.disk.setFaults(lost === undefined ? {} : { loseNewest: () => lost })
      const store = await storage.open('indexes', { synced: false })
      for (let number = 0; number < 5; number++) await store.write(batch => batch.put(keyOf(number), Buffer.alloc(1)))
      await store.write(batch => batch.delete(keyOf(4)))
      await store.clear({ gte: keyOf(2), lt: keyOf(4) })
      await store.write(batch => batch.put(keyOf(2), Buffer.alloc(1)))
      const left = await prefixOf(storage.crash())
      expect(left).to.equal(lost === 0 ? 3 : lost === 3 ? 5 : lost === 7 ? 1 : 0)
    }
    const store = await storage.crash().open('indexes', { synced: false })
    await store.write(batch => batch.put(keyOf(0), Buffer.alloc(1)))
    await store.close()
    expect(await prefixOf(storage.crash())).to.equal(1)
  })
})
