/**
 * Returns a hash of 48 bits of a sort key: the 32 bits of MurmurHash3 (Austin Appleby, x86_32 variant) with one seed,
 * and the highest 16 bits of the same hash with another seed. Hashes are stored, so the function must never change.
 *
 * @param key text with one character from U+0000 to U+00FF for each byte
 */
export function keyHash(key: string): number {
  return murmurHash3(key, 0) * 0x10000 + (murmurHash3(key, 0x9747b28c) >>> 16)
}

function murmurHash3(key: string, seed: number): number {
  const { length } = key
  const whole = length - length % 4
  let hash = seed
  for (let at = 0; at < whole; at += 4) {
    hash ^= scrambled(blockAt(key, at))
    hash = Math.imul(hash << 13 | hash >>> 19, 5) + 0xe6546b64 | 0
  }
  let rest = 0
  for (let at = length - 1; at >= whole; at--) rest = rest << 8 | key.charCodeAt(at)
  hash ^= scrambled(rest) ^ length
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b)
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35)
  return (hash ^ hash >>> 16) >>> 0
}

function blockAt(key: string, at: number): number {
  return key.charCodeAt(at) | key.charCodeAt(at + 1) << 8 | key.charCodeAt(at + 2) << 16 | key.charCodeAt(at + 3) << 24
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51)
  return Math.imul(mixed << 15 | mixed >>> 17, 0x1b873593)
}
