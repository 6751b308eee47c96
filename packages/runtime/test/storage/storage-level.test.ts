import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { LevelStorage } from '../../src/storage/storage-level.ts'
import { lastKey } from '../../src/storage/storage.ts'
import { storageSuite } from '../../src/storage/storage-suite.ts'

const directories = new Map<unknown, string>()

storageSuite('LevelStorage', {
  create: async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sectional-storage-'))
    const storage = new LevelStorage({ directory })
    directories.set(storage, directory)
    return storage
  },
  destroy: async storage => {
    await rm(directories.get(storage) as string, { recursive: true })
  },
  loseLastWrite: async (storage, name) => {
    const directory = join(directories.get(storage) as string, name)
    for (const file of (await readdir(directory)).filter(file => file.endsWith('.log'))) {
      const bytes = await readFile(join(directory, file))
      const at = bytes.indexOf('b\x012')
      if (at >= 0) await truncate(join(directory, file), at)
    }
  },
  refuseWrites: async (_, refused) => {
    const limit = `--fsize=${refused ? 0 : 'unlimited'}:unlimited`
    execFileSync('prlimit', ['--pid', String(process.pid), limit])
  },
})

describe('LevelStorage', () => {
  let directory: string
  beforeEach(async () => { directory = await mkdtemp(join(tmpdir(), 'sectional-storage-')) })
  afterEach(() => rm(directory, { recursive: true }))

  it('names the folder and a remedy when it is locked, damaged or a file of that name exists', async () => {
    const storage = new LevelStorage({ directory })
    const store = await storage.open('documents')
    const locked = await storage.open('documents').catch(error => error)
    expect(locked.message).to.include(join(directory, 'documents')).and.include('stop it')
    await store.close()

    await writeFile(join(directory, 'documents', 'CURRENT'), 'nonsense')
    const corrupt = await storage.open('documents').catch(error => error)
    expect([corrupt.name, corrupt.code]).to.deep.equal(['StorageError', 'corrupt'])
    expect(corrupt.message).to.include(join(directory, 'documents'))

    await writeFile(join(directory, 'indexes'), '')
    const blocked = await storage.open('indexes').catch(error => error)
    expect([blocked.name, blocked.code]).to.deep.equal(['StorageError', 'io'])
  })

  it('can be opened after an attempt that could not sync the directory', async () => {
    const handle = await open(directory)
    // The parent of this path is in a file system whose directories cannot be synced.
    const storage = new LevelStorage({ directory: `/proc/self/fd/${handle.fd}` })
    for (let attempt = 0; attempt < 2; attempt++) {
      const failure: unknown = await storage.open('documents').catch((error: unknown) => error)
      expect(failure).to.include({ name: 'StorageError', code: 'io' })
    }
    await (await new LevelStorage({ directory }).open('documents')).close()
    await handle.close()
  })

  it('ends a compaction after a part when the signal aborts', async () => {
    const store = await new LevelStorage({ directory }).open('documents')
    const value = randomBytes(1024 * 1024)
    for (let part = 0; part < 100; part += 4) {
      await store.write(batch => { for (let key = part; key < part + 4; key++) batch.put(`k${key}`, value) })
    }
    let checks = 0
    const signal = { get aborted() { return ++checks === 2 } } as AbortSignal
    const failure: unknown = await store.compact({ gte: '', lt: lastKey }, signal).catch((error: unknown) => error)
    expect(failure).to.include({ name: 'StorageError', code: 'closed' })
    await store.close()
  })

  it('accepts writes again after a failed one, and loses no acknowledged write', async () => {
    const child = fileURLToPath(new URL('torn-log.child.ts', import.meta.url))
    const command =
      `ulimit -f 1024; exec "${process.execPath}" --disable-warning=ExperimentalWarning "${child}" "${directory}" 65536`
    const { stdout } = await promisify(execFile)('sh', ['-c', command])
    expect(JSON.parse(stdout)).to.deep.equal({ acknowledged: 60, failures: Array(6).fill('io'), lost: [] })
  })

  const torn = async (...parameters: string[]): Promise<unknown> => {
    const child = fileURLToPath(new URL('torn-record.child.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(
      process.execPath, ['--disable-warning=ExperimentalWarning', child, directory, ...parameters],
    )
    return JSON.parse(stdout)
  }

  it('loses no acknowledged write after a clear that the disk has cut off', async () => {
    expect(await torn('clear', '20')).to.deep.equal({ outcome: 'io', failures: 1, damage: [], lost: [], left: 0 })
  })

  it('is not damaged when it is closed after a write that the disk has cut off', async () => {
    expect(await torn('write', '0')).to.deep.equal({ outcome: 'io', failures: 1, damage: [], lost: [], left: 0 })
  })

  it('is not closed by a disk that refuses to reopen it after a failed write', async () => {
    const child = fileURLToPath(new URL('refused-reopening.child.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(
      process.execPath, ['--disable-warning=ExperimentalWarning', child, directory],
    )
    expect(JSON.parse(stdout)).to.deep.equal({
      outcomes: ['done', 'io', 'io', 'io', 'done'], kept: ['before', 'after'],
    })
  })
})
