import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { crc32c } from '../../../src/storage/level/crc32c.ts'
import { checkLogs } from '../../../src/storage/level/level-check.ts'
import { readLog } from '../../../src/storage/level/level-log.ts'
import { checkTables } from '../../../src/storage/level/level-tables.ts'
import { LevelStorage } from '../../../src/storage/storage-level.ts'
import { lastKey } from '../../../src/storage/storage.ts'
import type { Store, StoreOptions } from '../../../src/storage/storage.ts'

const everything = { gte: '', lt: lastKey }

describe('a LevelDB store on a disk that changes what was written', () => {
  let base: string
  beforeEach(async () => { base = await mkdtemp(join(tmpdir(), 'sectional-damage-')) })
  afterEach(() => rm(base, { recursive: true }))

  const folder = (name: string): string => join(base, name, 'documents')
  const openIn = (name: string, options?: StoreOptions): Promise<Store> =>
    new LevelStorage({ directory: join(base, name) }).open('documents', options)

  /** Returns what a crash leaves of a store with some batches: a copy that is made while the store is open. */
  async function written(
    batches: number,
    { text = batch =>
      'x'.repeat(batch * 7), watermarkMs = 0 }: { text?: (batch: number) => string; watermarkMs?: number } = {},
  ): Promise<void> {
    await rm(base, { recursive: true, force: true })
    const store = await openIn('live', { watermarkMs })
    for (let batch = 0; batch < batches; batch++) {
      await store.write(operations => operations.put(`batch-${batch}`, Buffer.from(text(batch))))
    }
    await cp(folder('live'), folder('left'), { recursive: true })
    await store.close()
  }

  /** Returns the content of the store, or the code of the error that refuses it. */
  async function contents(name: string): Promise<string> {
    try {
      const store = await openIn(name)
      try {
        return (await store.iterate(everything).next(1000)).map(([key, value]) =>
          `${key}=${Buffer.from(value).toString()}`).join(' ')
      } finally {
        await store.close()
      }
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  async function largestLog(): Promise<string> {
    const logs = (await readdir(folder('left'))).filter(file => file.endsWith('.log'))
    const sized = await Promise.all(
      logs.map(async file => ({ file, bytes: (await readFile(join(folder('left'), file))).length })),
    )
    return sized.toSorted((a, b) => b.bytes - a.bytes)[0]!.file
  }

  async function changed(file: string, change: (bytes: Buffer) => Buffer): Promise<string> {
    await cp(folder('left'), folder('tried'), { recursive: true })
    await writeFile(join(folder('tried'), file), change(await readFile(join(folder('left'), file))))
    try {
      return await contents('tried')
    } finally {
      await rm(folder('tried'), { recursive: true })
    }
  }

  /**
   * Flips one bit at a time, and checks that the store is refused or reads as before. Most bits are detected by the
   * check of the logs alone, which is cheap.
   */
  async function expectNoSilentLoss(file: string, bits: Iterable<number>): Promise<void> {
    await cp(folder('left'), folder('sound'), { recursive: true })
    const sound = await contents('sound')
    expect(sound).to.include('batch-0=').and.not.equal('corrupt')
    const path = join(folder('left'), file)
    const bytes = await readFile(path)
    for (const bit of bits) {
      await writeFile(path, flipped(bytes, bit))
      const noticed = (await checkLogs(folder('left'))).length > 0
      await writeFile(path, bytes)
      if (!noticed) {
        expect(await changed(file, before => flipped(before, bit)), `bit ${bit} of ${file}`).to.be.oneOf([
          sound, 'corrupt',
        ])
      }
    }
  }

  it('notices each bit of its log that is flipped, the last record included, or reads the same', async function () {
    this.timeout(60_000)
    await written(4)
    const log = await largestLog()
    await expectNoSilentLoss(log, range(0, (await readFile(join(folder('left'), log))).length * 8))
  })

  it('notices flipped bits of records that go through several blocks', async function () {
    this.timeout(60_000)
    await written(4, { text: batch => `${batch}`.repeat(25_000) })
    const log = await largestLog()
    const { length } = await readFile(join(folder('left'), log))
    const headers = range(0, Math.floor(length / blockBytes))
      .flatMap(block => range(block * blockBytes * 8, block * blockBytes * 8 + 56))
    await expectNoSilentLoss(log, [...headers, ...range(0, 100).map(index => index * 104_729 % (length * 8))])
  })

  it('notices each bit of its manifest and of CURRENT that is flipped', async function () {
    this.timeout(60_000)
    await written(2)
    for (const file of (await readdir(folder('left'))).filter(name =>
      name.startsWith('MANIFEST') || name === 'CURRENT')) {
      const bytes = await readFile(join(folder('left'), file))
      for (const bit of range(0, bytes.length * 8)) {
        await writeFile(join(folder('left'), file), flipped(bytes, bit))
        expect(await checkLogs(folder('left')), `bit ${bit} of ${file}`).to.not.deep.equal([])
      }
      await writeFile(join(folder('left'), file), bytes)
      expect(await checkLogs(folder('left'))).to.deep.equal([])
    }
  })

  it('notices that the end of its log is missing, wherever it ends', async function () {
    this.timeout(60_000)
    await written(3)
    const log = await largestLog()
    const { length } = await readFile(join(folder('left'), log))
    // At every length within the last record, and at some lengths before it.
    for (const kept of range(0, length).filter(kept => kept % 7 === 0 || kept > length - 40)) {
      expect(await changed(log, bytes => bytes.subarray(0, kept)), `${kept} bytes`).to.equal('corrupt')
    }
  })

  it('notices bits of its tables that are flipped, or reads the same', async function () {
    this.timeout(60_000)
    await written(4, { text: batch => JSON.stringify({ batch, text: 'text '.repeat(batch * 4) }) })
    await openIn('left').then(store => store.close())
    await cp(folder('left'), folder('sound'), { recursive: true })
    const sound = await contents('sound')
    const tables = (await readdir(folder('left'))).filter(name => name.endsWith('.ldb'))
    let unnoticed = 0
    expect(tables).to.have.lengthOf.at.least(1)
    for (const file of tables) {
      const bytes = await readFile(join(folder('left'), file))
      // All bits of the footer, which has no checksum, and every seventh bit before it.
      for (const bit of range(0, bytes.length * 8).filter(bit => bit % 7 === 0 || bit >= (bytes.length - 48) * 8)) {
        await writeFile(join(folder('left'), file), flipped(bytes, bit))
        const noticed = (await checkTables(folder('left'), true)).length > 0
        // Undetected bits are padding in the footer. Opening the store takes long, so only few of them are tried.
        if (!noticed && unnoticed++ % 16 === 0) {
          expect(await changed(file, before => before), `bit ${bit} of ${file}`).to.be.oneOf([sound, 'corrupt'])
        }
        if (!noticed) expect(bit, `bit ${bit} of ${file}`).to.be.at.least((bytes.length - 48) * 8)
      }
      await writeFile(join(folder('left'), file), bytes)
      expect(await checkTables(folder('left'), true)).to.deep.equal([])
    }
  })

  it('names the keys that are in a damaged block, and no others', async () => {
    const store = await openIn('live')
    await store.write(batch => { for (let key = 1000; key < 4000; key++) batch.put(`k${key}`, randomText(key)) })
    await store.close()
    await openIn('live').then(store => store.close())
    const file = (await readdir(folder('live'))).find(name => name.endsWith('.ldb'))!
    const path = join(folder('live'), file)
    const bytes = await readFile(path)
    await writeFile(path, flipped(bytes, bytes.indexOf(randomText(2500)) * 8))
    expect(await checkTables(folder('live'), false)).to.deep.equal([])
    const found = await checkTables(folder('live'), true)
    expect(found).to.have.lengthOf(1)
    const [{ gte, lt }] = found[0]!.ranges as [{ gte: string; lt: string }]
    expect(gte < 'k2500' && 'k2500' < lt, `${gte} to ${lt}`).to.equal(true)
    expect(gte > 'k2400' && lt < 'k2600', `${gte} to ${lt}`).to.equal(true)
    await writeFile(path, flipped(bytes, bytes.length * 8 - 60 * 8))
    expect(await checkTables(folder('live'), false), 'a bit of the index').to.have.lengthOf(1)
  })

  it('does not treat a write that a crash interrupted as damage', async function () {
    this.timeout(60_000)
    await written(2)
    const acknowledged = await readFile(join(folder('left'), 'WATERMARK'))
    const log = await largestLog()
    const before = await readFile(join(folder('left'), log))
    const sound = await contents('left')
    await written(3, { text: batch => 'x'.repeat(batch === 2 ? 2000 : batch * 7) })
    const after = await readFile(join(folder('left'), log))
    await written(2)
    await writeFile(join(folder('left'), 'WATERMARK'), acknowledged)
    const part = after.subarray(before.length)
    for (const cut of [1, 6, 7, 8, 500, part.length - 1]) {
      expect(await changed(log, bytes =>
        Buffer.concat([bytes, part.subarray(0, cut)])), `cut at ${cut}`).to.equal(sound)
    }
    const tails = { zeros: Buffer.alloc(1000), 'an unwritten sector': Buffer.from(part).fill(0, 600, 1800) }
    for (const [what, tail] of Object.entries(tails)) {
      expect(await changed(log, bytes => Buffer.concat([bytes, tail])), what).to.equal(sound)
    }
  })

  it('notices files that are missing', async () => {
    await written(2)
    for (const file of ['CURRENT', 'WATERMARK', await largestLog()]) {
      await cp(folder('left'), folder('tried'), { recursive: true })
      await rm(join(folder('tried'), file))
      expect(await contents('tried'), file).to.equal('corrupt')
      await rm(folder('tried'), { recursive: true })
    }
  })

  it('can be opened after its first opening was interrupted by a crash or a full disk', async () => {
    await written(0)
    const { length } = await readFile(join(folder('left'), 'WATERMARK'))
    for (const cut of [0, 1, 11, 12, 4095, 4096, length - 1]) {
      expect(await changed('WATERMARK', bytes => bytes.subarray(0, cut)), `cut at ${cut}`).to.equal('')
    }
    expect(await changed('WATERMARK', bytes => Buffer.alloc(bytes.length)), 'unwritten sectors').to.equal('')
    await written(2)
    for (const cut of [0, 11]) {
      expect(await changed('WATERMARK', bytes => bytes.subarray(0, cut)), `cut at ${cut} later`).to.equal('corrupt')
    }
    expect(await changed('WATERMARK', bytes => Buffer.alloc(bytes.length)), 'erased later').to.equal('corrupt')
  })

  it('reports damage when LevelDB cannot open the rest', async () => {
    await written(2)
    await writeFile(join(folder('left'), 'CURRENT'), 'MANIFEST-777777\n')
    for (const attempt of [1, 2]) {
      const error = await openIn('left', { onDamage: 'report' }).catch((reason: unknown) => reason)
      expect(String(error), `attempt ${attempt}`).to.match(/is damaged: CURRENT names no manifest.*empty this node's/)
    }
  })

  it('is refused at each attempt, and its files are not changed', async () => {
    await written(3)
    const log = await largestLog()
    await writeFile(join(folder('left'), log), flipped(await readFile(join(folder('left'), log)), 100))
    for (const attempt of [1, 2]) {
      const error = await openIn('left').catch(error => error)
      expect(error, `attempt ${attempt}`).to.include({ name: 'StorageError', code: 'corrupt' })
      expect(error.message).to.include(folder('left')).and.include('records follow')
    }
  })

  it('can be opened with the remaining data, and reports the damage until it has been handled', async () => {
    await written(3)
    const log = await largestLog()
    await writeFile(join(folder('left'), log), flipped(await readFile(join(folder('left'), log)), 100))
    for (const attempt of [1, 2]) {
      const store = await openIn('left', { onDamage: 'report' })
      expect(store.damage[0], `attempt ${attempt}`).to.include(log)
      await store.close()
    }
    expect(await contents('left')).to.equal('corrupt')
    const store = await openIn('left', { onDamage: 'report' })
    await store.forgetDamage()
    expect(store.damage).to.deep.equal([])
    await store.write(batch => batch.put('later', Buffer.from('')))
    await store.close()
    expect(await contents('left')).to.include('later=')
  })

  it('is not noted as damaged by a process that cannot open it because another one has it open', async () => {
    const store = await openIn('live', { watermarkMs: 0 })
    for (const key of ['a', 'b', 'c']) await store.write(batch => batch.put(key, Buffer.from(key)))
    const log = join(folder('live'), '000003.log')
    const bytes = await readFile(log)
    await writeFile(log, flipped(bytes, 100))
    expect(await openIn('live', { onDamage: 'report' }).catch(error => error)).to.include({ code: 'locked' })
    await writeFile(log, bytes)
    await store.close()
    const again = await openIn('live', { onDamage: 'report' })
    expect(again.damage).to.deep.equal([])
    await again.close()
  })

  it('covers all acknowledged writes when it is closed, and old ones while it is open', async () => {
    await written(3, { watermarkMs: 60_000 })
    const crashed = await largestLog()
    expect(await changed(crashed, bytes => bytes.subarray(0, 50)), 'younger than the interval').to.not.equal('corrupt')
    await rm(folder('left'), { recursive: true })
    await cp(folder('live'), folder('left'), { recursive: true })
    expect(await changed(await largestLog(), bytes => bytes.subarray(0, 50)), 'closed').to.equal('corrupt')
    await rm(base, { recursive: true })

    const store = await openIn('live', { watermarkMs: 1 })
    const path = join(folder('live'), 'WATERMARK')
    const start = await readFile(path)
    await store.write(batch => batch.put('batch-0', Buffer.from('')))
    while ((await readFile(path)).equals(start)) await new Promise(setImmediate)
    await cp(folder('live'), folder('left'), { recursive: true })
    await store.close()
    expect(await changed(await largestLog(), () =>
      Buffer.alloc(0)), 'idle for longer than the interval').to.equal('corrupt')
  })
})

describe('CRC-32C', () => {
  it('gives the check value of its definition, and the same for every start', () => {
    expect(crc32c(Buffer.from('123456789'))).to.equal(0xe3069283)
    expect(crc32c(Buffer.from('..123456789.'), 2, 11)).to.equal(0xe3069283)
    // RFC 3720, B.4.
    expect(crc32c(Buffer.alloc(32))).to.equal(0x8a9136aa)
  })
})

describe('a log of LevelDB', () => {
  it('is empty when nothing was written', () => {
    expect(readLog(Buffer.alloc(0))).to.deep.equal({ records: [], damage: undefined })
    expect(readLog(Buffer.alloc(100_000))).to.deep.equal({ records: [], damage: undefined })
  })
})

const blockBytes = 32 * 1024

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

/** Random bytes, which hardly compress. */
function randomText(seed: number): Buffer {
  const bytes = Buffer.alloc(100)
  for (let at = 0; at < bytes.length; at++) bytes[at] = seed = Math.imul(seed, 1_103_515_245) + 12_345 >>> 8
  return bytes
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}
