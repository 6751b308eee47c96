import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LevelStorage } from '../../src/storage/storage-level.ts'
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
})
