/** Reads varints, all of which are decoded at once: reading them one by one would take many times as long. */
export class NumberReader {
  readonly #numbers: Uint32Array
  #at = 0

  constructor(bytes: Uint8Array) {
    const numbers = new Uint32Array(bytes.length)
    let count = 0
    let number = 0
    let shift = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      number |= (byte & 0x7f) << shift
      shift += 7
      if (byte >= 0x80) continue
      numbers[count++] = number
      number = 0
      shift = 0
    }
    this.#numbers = numbers.subarray(0, count)
  }

  next(): number {
    return this.#numbers[this.#at++]!
  }

  /** A view of numbers that the caller may change. */
  take(count: number): Uint32Array {
    return this.#numbers.subarray(this.#at, this.#at += count)
  }

  /** Reads a length and as many numbers. */
  list(): Uint32Array {
    return this.take(this.next())
  }
}

/** Replaces gaps by their sums, modulo 2^32. */
export function sums(gaps: Uint32Array): Uint32Array {
  for (let i = 1; i < gaps.length; i++) gaps[i]! += gaps[i - 1]!
  return gaps
}

/** Like `sums`, of gaps that are 2 * n, or 2 * n - 1 for -n. */
export function signedSums(gaps: Uint32Array): Uint32Array {
  for (let i = 0; i < gaps.length; i++) gaps[i] = gaps[i]! % 2 === 0 ? gaps[i]! >>> 1 : -(gaps[i]! + 1 >>> 1)
  return sums(gaps)
}
