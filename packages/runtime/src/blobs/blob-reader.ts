import { createHash } from 'node:crypto'
import { BlobError } from './blob-store.ts'

/** Passes the chunks of a whole blob on, the last one only when all of them have the right hash. */
export async function* verified(hash: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const digest = createHash('sha256')
  let held: Uint8Array | undefined
  for await (const chunk of chunks) {
    digest.update(chunk)
    if (held !== undefined) yield held
    held = chunk
  }
  const found = digest.digest('hex')
  if (found !== hash) throw new BlobError('corrupt', `the blob ${hash} is damaged: its bytes have the hash ${found}`)
  if (held !== undefined) yield held
}
