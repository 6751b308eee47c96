/**
 * Estimates the number of different hashes (P. Flajolet et al., "HyperLogLog", 2007). The estimator is the "improved
 * raw estimator" of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, which needs no
 * tables of corrections: https://arxiv.org/abs/1702.01284
 *
 * The first 11 bits of a hash, the precision that CouchDB has, choose one of 2,048 registers. A register contains the
 * greatest number of leading zeros of the other bits of its hashes, plus one. The standard error is 1.04 / sqrt(2048),
 * which is 2.3 %. As long as there are few different hashes, they are kept, and their number is exact.
 */
import type { ByteWriter } from '../encoding/byte-writer.ts'
import type { ByteReader } from '../encoding/varint.ts'

const precision = 11
const registerCount = 1 << precision
const hashBits = 48
const restBits = hashBits - precision
/** A hash needs 6 bytes, as much as 8 registers. The hashes are given up when they need more than the registers. */
const hashesMax = 256
const hashBytes = 6
const registerBits = 6
const registersBytes = registerCount * registerBits / 8

const hashesTag = 0
const registersTag = 1

export class HyperLogLog {
  /** The different hashes, as long as they are at most `hashesMax`. */
  #hashes: Set<number> | undefined = new Set()
  /** Exists from then on. */
  #registers: Uint8Array | undefined

  /** @param hash an integer of 48 bits */
  add(hash: number): void {
    if (this.#registers !== undefined) {
      register(this.#registers, hash)
      return
    }
    this.#hashes!.add(hash)
    if (this.#hashes!.size > hashesMax) this.#toRegisters()
  }

  /** @throws RangeError for bytes that `encode` has not written */
  addEncoded(reader: ByteReader): void {
    const tag = reader.byte()
    if (tag === hashesTag) {
      for (let left = reader.varint(); left > 0; left--) this.add(reader.raw(hashBytes).readUIntBE(0, hashBytes))
    } else if (tag === registersTag) {
      const registers = this.#registers ?? this.#toRegisters()
      const packed = reader.raw(registersBytes)
      for (let at = 0; at < registerCount; at++) {
        const rank = packedAt(packed, at)
        if (rank > registers[at]!) registers[at] = rank
      }
    } else throw new RangeError(`${tag} is not the tag of a HyperLogLog`)
  }

  encode(writer: ByteWriter): void {
    if (this.#registers === undefined) {
      const bytes = Buffer.allocUnsafe(this.#hashes!.size * hashBytes)
      let at = 0
      for (const hash of this.#hashes!) at = bytes.writeUIntBE(hash, at, hashBytes)
      writer.byte(hashesTag)
      writer.varint(this.#hashes!.size)
      writer.raw(bytes)
    } else {
      writer.byte(registersTag)
      writer.raw(packed(this.#registers))
    }
  }

  /** Returns the number of different hashes, rounded to an integer. */
  estimate(): number {
    if (this.#registers === undefined) return this.#hashes!.size
    const counts = new Uint32Array(restBits + 2)
    for (const rank of this.#registers) counts[rank]!++
    let sum = registerCount * tau(1 - counts[restBits + 1]! / registerCount)
    for (let rank = restBits; rank > 0; rank--) sum = (sum + counts[rank]!) / 2
    sum += registerCount * sigma(counts[0]! / registerCount)
    return Math.round(registerCount ** 2 / (2 * Math.LN2 * sum))
  }

  #toRegisters(): Uint8Array {
    const registers = new Uint8Array(registerCount)
    for (const hash of this.#hashes!) register(registers, hash)
    this.#hashes = undefined
    this.#registers = registers
    return registers
  }
}

function register(registers: Uint8Array, hash: number): void {
  const index = Math.floor(hash / 2 ** restBits)
  const rest = hash % 2 ** restBits
  const high = Math.floor(rest / 2 ** 32)
  const highBits = restBits - 32
  const zeros = high > 0 ? Math.clz32(high) - (32 - highBits) : highBits + Math.clz32(rest)
  if (zeros + 1 > registers[index]!) registers[index] = zeros + 1
}

/** Writes four registers of 6 bits into three bytes. */
function packed(registers: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(registersBytes)
  let to = 0
  for (let at = 0; at < registerCount; at += 4) {
    const [a, b, c, d] = registers.subarray(at, at + 4) as unknown as [number, number, number, number]
    to = bytes.writeUIntBE(a << 18 | b << 12 | c << 6 | d, to, 3)
  }
  return bytes
}

function packedAt(bytes: Buffer, index: number): number {
  const at = (index >> 2) * 3
  const group = bytes[at]! << 16 | bytes[at + 1]! << 8 | bytes[at + 2]!
  return group >> (3 - (index & 3)) * registerBits & 0x3f
}

/** The sum of x^(2^k) * 2^(k-1) over all k from 0, plus x. */
function sigma(x: number): number {
  if (x === 1) return Infinity
  let sum = x
  for (let power = x, weight = 1, before = -1; sum !== before; weight *= 2) {
    power *= power
    before = sum
    sum += power * weight
  }
  return sum
}

/** One third of: 1 - x, minus the sum of (1 - x^(2^-k))^2 * 2^-k over all k from 1. */
function tau(x: number): number {
  if (x === 0 || x === 1) return 0
  let sum = 1 - x
  for (let root = x, weight = 1, before = -1; sum !== before;) {
    root = Math.sqrt(root)
    weight /= 2
    before = sum
    sum -= (1 - root) ** 2 * weight
  }
  return sum / 3
}
