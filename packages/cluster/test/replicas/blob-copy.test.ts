import { expect } from 'chai'
import { ReplicaError } from '@sectional/core'
import type { BlobReplica } from '@sectional/core'
import { bringBlobs } from '../../src/replicas/blob-copy.ts'
import { plainCall } from '../replica-world.ts'

function revision(id: string, ...blobs: string[]) {
  return {
    id,
    attachments: blobs.map(blob => ({
      name: blob, contentType: 'text/plain', revpos: 1, digest: '', blob, length: 1, encoding: 'identity' as const,
      storedLength: 1,
    })),
  }
}

/** Holds `blobs`, and counts the uploads that it receives at the same time. */
class CountingBlobs {
  readonly blobs: readonly string[]
  readonly written: string[] = []
  uploads = 0
  uploadsMax = 0

  constructor(blobs: readonly string[]) {
    this.blobs = blobs
  }

  hasBlobs(hashes: readonly string[]): Promise<readonly boolean[]> {
    return Promise.resolve(hashes.map(hash => this.blobs.includes(hash)))
  }

  async *readBlob({ hash }: { readonly hash: string }): AsyncGenerator<Uint8Array> {
    if (!this.blobs.includes(hash)) throw new ReplicaError('missing_blob', `there is no blob ${hash}`)
    yield Buffer.from(hash)
  }

  async writeBlob(chunks: AsyncIterable<Uint8Array>): Promise<{ readonly hash: string }> {
    this.uploadsMax = Math.max(this.uploadsMax, ++this.uploads)
    try {
      let hash = ''
      for await (const chunk of chunks) hash += Buffer.from(chunk).toString()
      await new Promise(resolve => { setImmediate(resolve) })
      this.written.push(hash)
      return { hash }
    } finally {
      this.uploads--
    }
  }
}

describe('copies of blobs', () => {
  it('are made four at a time, of those that the target lacks', async () => {
    const hashes = Array.from({ length: 20 }, (_, index) => `blob${index}`)
    const source = new CountingBlobs(hashes)
    const target = new CountingBlobs(['blob3'])
    const items = hashes.map(hash => revision(`doc ${hash}`, hash))
    expect(await bring(source, target, items)).to.equal(items)
    expect(target.written.toSorted()).to.deep.equal(hashes.filter(hash => hash !== 'blob3').toSorted())
    expect(target.uploadsMax).to.equal(4)
  })

  it('leave out the revisions whose content the source lacks', async () => {
    const whole = revision('whole', 'a', 'b')
    const partial = revision('partial', 'a', 'lost')
    const target = new CountingBlobs([])
    expect(await bring(new CountingBlobs(['a', 'b']), target, [partial, whole])).to.deep.equal([whole])
    expect(target.written.toSorted()).to.deep.equal(['a', 'b'])
  })

  it('leave out the revisions whose content is damaged on the source, and bring the others', async () => {
    const whole = revision('whole', 'a', 'b')
    const partial = revision('partial', 'a', 'damaged', 'changed')
    const source = new CountingBlobs(['a', 'b', 'damaged', 'changed'])
    const read = source.readBlob.bind(source)
    source.readBlob = async function* (request) {
      if (request.hash === 'damaged') throw new ReplicaError('damaged_blob', 'a chunk has another checksum')
      if (request.hash === 'changed') yield Buffer.from('x')
      else yield* read(request)
    }
    const target = new CountingBlobs([])
    expect(await bring(source, target, [partial, whole])).to.deep.equal([whole])
    expect(target.written).to.include.members(['a', 'b'])
  })
})

function bring<Item extends ReturnType<typeof revision>>(
  source: CountingBlobs, target: CountingBlobs, items: readonly Item[],
): Promise<readonly Item[]> {
  return bringBlobs(source as unknown as BlobReplica, target as unknown as BlobReplica, items, plainCall)
}
