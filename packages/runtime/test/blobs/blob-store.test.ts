import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { FileBlobStorage } from '../../src/blobs/blob-store-files.ts'
import { MemoryBlobStorage } from '../../src/blobs/blob-store-memory.ts'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
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

describe('FileBlobStorage', () => {
  let directory: string
  beforeEach(async () => { directory = await mkdtemp(join(tmpdir(), 'sectional-blobs-')) })
  afterEach(() => rm(directory, { recursive: true }))

  it('lists blobs only, whatever else is in its folders', async () => {
    const store = await new FileBlobStorage(directory).open('attachments')
    const writer = await store.create()
    await writer.write(Buffer.from('content'))
    const { hash } = await writer.finish()
    const folder = join(directory, 'attachments')
    const otherFolder = hash.startsWith('00') ? '11' : '00'
    await mkdir(join(folder, otherFolder))
    await mkdir(join(folder, 'lost+found'))
    for (const path of ['README', '5', `${hash.slice(0, 2)}/README`, `${otherFolder}/${hash}`, 'lost+found/x']) {
      await writeFile(join(folder, path), 'x')
    }
    await writeFile(join(folder, hash.startsWith('ff') ? 'ee' : 'ff'), 'x')
    expect(await listed(store)).to.deep.equal([hash])
    await store.close()
  })

  it('reports that its folder cannot be listed', async () => {
    const store = await new FileBlobStorage(directory).open('attachments')
    await rm(join(directory, 'attachments'), { recursive: true })
    const failure: unknown = await listed(store).catch((error: unknown) => error)
    expect(failure).to.include({ name: 'BlobError', code: 'io' })
    await store.close()
  })
})

async function listed(store: BlobStore): Promise<string[]> {
  const hashes: string[] = []
  for await (const hash of store.list()) hashes.push(hash)
  return hashes
}
