import { createHash } from 'node:crypto'

/**
 * Computes CouchDB's hash of a first revision from a JavaScript value. A number whose JavaScript text is an integer is
 * hashed as an integer, and any other number as a double.
 */
export function naiveRevisionHash(
  body: unknown, attachments: readonly { readonly name: string; readonly type: string; readonly md5: Buffer }[] = [],
): string {
  const digests = attachments.toReversed().map(({ name, type, md5 }) =>
    Buffer.concat([Buffer.of(104, 3), binary(name), binary(type), binary(md5)]))
  return createHash('md5')
    .update(Buffer.concat([Buffer.of(131), list([atom('false'), term(0), term(0), term(body), list(digests)])]))
    .digest('hex')
}

function term(value: unknown): Buffer {
  if (typeof value === 'boolean' || value === null) return atom(String(value))
  if (typeof value === 'string') return binary(value)
  if (typeof value === 'number') return /[.e]/.test(String(value)) ? double(value) : integer(BigInt(String(value)))
  if (Array.isArray(value)) {
    const bytes = value.every(item => Number.isInteger(item) && item >= 0 && item <= 255) && value.length > 0
      && value.length < 65_536
    return bytes
      ? Buffer.concat([Buffer.of(107, value.length >> 8, value.length & 255), Buffer.from(value)])
      : list(value.map(term))
  }
  const pairs = Object.entries(value as object)
    .map(([name, item]) => Buffer.concat([Buffer.of(104, 2), binary(name), term(item)]))
  return Buffer.concat([Buffer.of(104, 1), list(pairs)])
}

function atom(name: string): Buffer {
  return Buffer.concat([Buffer.of(100, 0, name.length), Buffer.from(name)])
}

function list(items: Buffer[]): Buffer {
  if (items.length === 0) return Buffer.of(106)
  return Buffer.concat([Buffer.of(108), uint32(items.length), ...items, Buffer.of(106)])
}

function binary(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string)
  return Buffer.concat([Buffer.of(109), uint32(bytes.length), bytes])
}

function double(value: number): Buffer {
  const bytes = Buffer.alloc(9, 70)
  bytes.writeDoubleBE(value, 1)
  return bytes
}

function integer(value: bigint): Buffer {
  if (value >= 0n && value < 256n) return Buffer.of(97, Number(value))
  if (value >= -(2n ** 31n) && value < 2n ** 31n) {
    const bytes = Buffer.alloc(5, 98)
    bytes.writeInt32BE(Number(value), 1)
    return bytes
  }
  const bytes: number[] = []
  for (let rest = value < 0n ? -value : value; rest > 0n; rest >>= 8n) bytes.push(Number(rest & 255n))
  return Buffer.from([110, bytes.length, value < 0n ? 1 : 0, ...bytes])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
