import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBlobStorage } from '../../src/blobs/blob-store-files.ts'
import { MemoryBlobStorage } from '../../src/blobs/blob-store-memory.ts'
import { blobStoreSuite } from '../../src/blobs/blob-store-suite.ts'

const directories = new Map<unknown, string>()

blobStoreSuite('FileBlobStorage', {
  create: async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sectional-blobs-'))
    const storage = new FileBlobStorage(directory)
    directories.set(storage, directory)
    return storage
  },
  damage: async (storage, store, hash, change) => {
    const path = join(directories.get(storage) as string, store, hash.slice(0, 2), hash)
    await writeFile(path, change(await readFile(path)))
  },
  destroy: async storage => rm(directories.get(storage) as string, { recursive: true }),
})

blobStoreSuite('MemoryBlobStorage', {
  create: async () => new MemoryBlobStorage(),
  damage: async (storage, store, hash, change) => {
    const blobs = (storage as MemoryBlobStorage).disk.blobs(store)
    blobs.set(hash, change(blobs.get(hash)!))
  },
  destroy: async () => {},
})
