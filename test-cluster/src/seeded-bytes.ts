import { createHash } from 'node:crypto'

/** Returns bytes that do not compress and are the same for the same seed. */
export function seededBytes(seed: string, length: number): Buffer {
  return createHash('shake256', { outputLength: length }).update(seed).digest()
}
