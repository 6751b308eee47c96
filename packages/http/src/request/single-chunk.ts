/** Yields the bytes as one chunk. */
export async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes
}
