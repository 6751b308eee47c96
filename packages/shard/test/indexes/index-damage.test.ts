import { spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { ReplicaError } from '@sectional/core'
import { LevelStorage, MemoryStorage, SeededRandom } from '@sectional/runtime'
import { IndexKeys } from '../../src/indexes/index-keys.ts'
import { indexStoreName } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { DamagedRecordError } from '../../src/records/damaged-record.ts'
import { collect, context } from '../shard-world.ts'
import { DamageWorld, everything, indexer } from './damage-world.ts'

describe('a damaged store of indexes', () => {
  let directory: string
  let intact: string
  let world: DamageWorld
  const folder = (): string => join(directory, indexStoreName)
  const start = (): void => world.start(new LevelStorage({ directory }))

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sectional-damage-'))
    intact = await mkdtemp(join(tmpdir(), 'sectional-damage-'))
    world = new DamageWorld()
    // A table, and a log with rows that replace some of its rows.
    for (const [from, to, prefix] of [[0, 2000, 'x'], [1500, 2500, 'y'], [2400, 2600, 'z']] as const) {
      await world.write(from, to, number => `${prefix}${number * 7919 % 1000}`)
      start()
      await world.build()
      await world.host.close()
    }
    await cp(folder(), intact, { recursive: true })
  })
  after(() => Promise.all([directory, intact].map(path => rm(path, { recursive: true }))))
  beforeEach(async () => {
    await rm(folder(), { recursive: true })
    await cp(intact, folder(), { recursive: true })
  })
  afterEach(() => world.host.close())

  it('gives no wrong rows, and is built again, when any byte of its files was changed', async () => {
    const random = new SeededRandom(7)
    let healed = 0
    const files = (await readdir(intact)).filter(name => name !== 'LOCK' && !name.startsWith('LOG'))
    expect(files.some(name => name.endsWith('.ldb'))).to.equal(true)
    for (const file of files) {
      const bytes = await readFile(join(intact, file))
      for (let turn = 0; turn < 5; turn++) {
        await rm(folder(), { recursive: true })
        await cp(intact, folder(), { recursive: true })
        const at = Math.floor(random.fraction() * bytes.length)
        const changed = Buffer.from(bytes)
        changed[at]! ^= 1 << Math.floor(random.fraction() * 8)
        await writeFile(join(folder(), file), changed)
        start()
        await world.host.checkFiles(async () => {})
        await world.check()
        healed += await world.damaged('store') + await world.damaged('index')
        await world.host.close()
      }
    }
    expect(healed).to.be.above(4)
    start()
  }).timeout(120_000)

  it('is built again when files are missing, cut off or replaced', async () => {
    const names = await readdir(intact)
    const spoilers = [
      ...names.filter(name => name !== 'LOCK').map(name => () => rm(join(folder(), name))),
      ...names.filter(name => /ldb|MANIFEST/.test(name)).map(name => async () => {
        await truncate(join(folder(), name), Math.floor((await readFile(join(folder(), name))).length / 2))
      }),
      () => writeFile(join(folder(), 'CURRENT'), 'nonsense'),
    ]
    for (const spoil of spoilers) {
      await rm(folder(), { recursive: true })
      await cp(intact, folder(), { recursive: true })
      await spoil()
      start()
      await world.check()
      await world.host.close()
    }
    start()
  }).timeout(60_000)

  it('is replaced while it is in use when LevelDB cannot read a block', async () => {
    for (const name of (await readdir(intact)).filter(each => each.endsWith('.ldb'))) {
      const bytes = await readFile(join(intact, name))
      // The first data block begins with the table. A compressed block without its beginning cannot be unpacked. A
      // table that LevelDB was just writing when the copy was made may be empty.
      await writeFile(join(folder(), name), bytes.fill(0xff, 0, Math.min(200, bytes.length)))
    }
    start()
    await world.check()
    expect(await world.damaged('store') + await world.damaged('index')).to.be.above(0)
    await world.write(2600, 2700, number => `w${number}`)
    await world.build()
    await world.check()
  })
})

describe('a damaged index', () => {
  /** Builds an index in memory, changes an entry of its store, acts, and then compares the rows with the documents. */
  async function afterDamage(
    pick: (keys: IndexKeys) => string, change: (value: Uint8Array) => Uint8Array | undefined,
    act: (world: DamageWorld) => Promise<void>,
  ): Promise<void> {
    const world = new DamageWorld()
    const storage = new MemoryStorage()
    await world.write(0, 500, number => `x${number * 37 % 100}`)
    // Rows in memory would hide the damage.
    world.start(storage, indexer, { cacheBytes: 0 })
    await world.build()
    damage(storage, pick(new IndexKeys(1)), change)
    await act(world)
    await world.check()
    expect(await world.damaged('index')).to.equal(1)
    await world.host.close()
  }
  /** Changes the first entry of the store whose key begins so. */
  function damage(
    storage: MemoryStorage, wanted: string, change: (value: Uint8Array) => Uint8Array | undefined,
  ): void {
    const [key, value] = storage.disk.entries(indexStoreName).find(([each]) => each.startsWith(wanted))!
    storage.disk.damage(indexStoreName, key, change(value))
  }
  const missing = (): undefined => undefined
  const flipped = (value: Uint8Array): Uint8Array => value.map((byte, at) => at === value.length - 1 ? byte ^ 1 : byte)
  const change = (world: DamageWorld): Promise<void> => world.write(0, 5, number => `changed${number}`)

  it('is found by a reduction when one of its rows is missing', async () => {
    await afterDamage(keys => keys.row(''), missing, async world => {
      const range = { lower: { key: 'ax', inclusive: true } }
      const request = { ...everything, ranges: [range], groupLevel: 0 } as const
      const failure: unknown = await collect((await world.indexes()).reduceIndex(request, context))
        .catch((error: unknown) => error)
      expect(failure).to.include({ code: 'storage' })
    })
  })

  it('is built again in the same query when a change meets the damage', async () => {
    const built = async (world: DamageWorld): Promise<void> => {
      await change(world)
      await world.build()
    }
    await afterDamage(keys => keys.document('d1'), flipped, built)
    await afterDamage(keys => keys.row('ax0'), missing, built)
    await afterDamage(keys => keys.row('ax0'), flipped, built)
    await afterDamage(keys => keys.pages().gte, missing, built)
    await afterDamage(keys => keys.pages().gte, flipped, built)
  })

  it('is built again in the same query also when it was damaged before', async () => {
    const world = new DamageWorld()
    const storage = new MemoryStorage()
    await world.write(0, 500, number => `x${number * 37 % 100}`)
    world.start(storage, indexer, { cacheBytes: 0 })
    await world.build()
    for (const prefix of [1, 2]) {
      damage(storage, new IndexKeys(prefix).document('d1'), flipped)
      await world.write(0, 5, number => `changed${number} at ${prefix}`)
      await world.build()
      await world.check()
      expect(await world.damaged('index')).to.equal(prefix)
    }
    await world.host.close()
  })

  it('is not what damage of a document is taken for', async () => {
    const world = new DamageWorld()
    await world.write(0, 10, number => `x${number}`)
    world.start(new MemoryStorage())
    await world.build()
    await world.write(10, 11, number => `x${number}`)
    const { scanChanges } = world.replica
    world.replica.scanChanges = () => {
      throw new ReplicaError('storage', 'a body is damaged', { cause: new DamagedRecordError('a body is damaged') })
    }
    const failure: unknown = await world.build().catch((error: unknown) => error)
    expect(failure).to.include({ code: 'storage' })
    expect(await world.damaged('index')).to.equal(0)
    world.replica.scanChanges = scanChanges
    await world.check()
    await world.host.close()
  })
})

describe('the disk of the indexes', () => {
  it('may be full: a query gets an error that says so, and the next one continues the build', async () => {
    const world = new DamageWorld()
    const storage = new MemoryStorage()
    const mapped: string[] = []
    const counting: Indexer = {
      ...indexer,
      map: async (each, documents, signal) => {
        mapped.push(...documents.map(({ id }) => id))
        return indexer.map(each, documents, signal)
      },
    }
    await world.write(0, 1000, number => `x${number}`)
    world.start(storage, counting)
    let batches = 0
    storage.disk.setFaults({ failWrite: store => store === indexStoreName && ++batches > 3 ? 'full' : undefined })
    for (const _query of [1, 2]) {
      const failure: unknown = await world.build().catch((error: unknown) => error)
      expect(failure).to.include({ code: 'storage' })
      expect(String(failure)).to.include('No space left on device')
    }
    const done = new Set(mapped).size
    expect(done).to.be.within(200, 900)
    storage.disk.setFaults({})
    await world.check()
    // Only what could not be written was mapped again: a batch of four pages, and one page by the second attempt.
    expect(mapped.length).to.be.at.most(1000 + 5 * 128)
    await world.host.close()
  })
})

describe('a process that builds indexes', () => {
  it('may be killed at any moment: the next one continues, and no row is wrong', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sectional-killed-'))
    const child = fileURLToPath(new URL('killed-build.child.ts', import.meta.url))
    const random = new SeededRandom(3)
    for (let documents = 400; documents <= 4000; documents += 800) {
      const builder = spawn(process.execPath, [
        '--conditions=sectional-source', '--disable-warning=ExperimentalWarning', child, directory, String(documents),
      ])
      const ended = new Promise(resolve => { builder.once('close', resolve) })
      const killAfter = Math.floor(random.fraction() * 30)
      let lines = 0
      for await (const chunk of builder.stdout) {
        lines += String(chunk).split('\n').length - 1
        if (lines > killAfter) builder.kill('SIGKILL')
      }
      await ended
      const world = new DamageWorld()
      await world.fill(documents)
      world.start(new LevelStorage({ directory }))
      await world.checkState()
      await world.check()
      expect(await world.damaged('store') + await world.damaged('index')).to.equal(0)
      await world.host.close()
    }
    await rm(directory, { recursive: true })
  }).timeout(90_000)
})
