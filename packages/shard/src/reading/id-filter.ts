const bitsPerId = 16
const probes = 7
/** A block has the size of a cache line, 64 bytes. All probes of an id are in one block. */
const blockWords = 16
const blockBitsMask = blockWords * 32 - 1
const firstLayerIds = 512
/** Factor from one layer's size to the next. It is large, because a look-up of a new id searches all layers. */
const layerGrowth = 4

/** The bytes that all filters of one node may use together. */
export class FilterBudget {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** Takes bytes from the budget; returns false when too few are left. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false
    this.#left -= bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#left += bytes
  }
}

interface Layer { readonly words: Int32Array; readonly idsMax: number; ids: number }

/**
 * A filter that tells without a read of the disk that an id was never added. It is a chain of blocked Bloom filters
 * (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007), each four times as large as the one
 * before. The rate of false positives is about 1 %. The filter takes 2.7 to 8 bytes for each id.
 */
export class IdFilter {
  readonly #budget: FilterBudget
  readonly #layers: Layer[] = []
  #full = false

  constructor(budget: FilterBudget) {
    this.#budget = budget
  }

  /** True when the budget was insufficient. The filter is then empty, and `mayHave` must not be called any more. */
  get full(): boolean {
    return this.#full
  }

  add(id: string): void {
    if (this.#full) return
    const { block, bits } = hashOf(id)
    if (this.#mayHave(block, bits)) return
    const layer = this.#writable()
    if (layer === undefined) return this.release()
    layer.ids++
    const base = blockStart(layer, block)
    for (let probe = 0, bit = bits & blockBitsMask; probe < probes; probe++, bit = nextBit(bit, bits)) {
      layer.words[base + (bit >>> 5)]! |= 1 << (bit & 31)
    }
  }

  /** Returns false only for an id that was never added. */
  mayHave(id: string): boolean {
    const { block, bits } = hashOf(id)
    return this.#mayHave(block, bits)
  }

  /** Returns the memory to the budget. From then on `full` is true. */
  release(): void {
    for (const { words } of this.#layers) this.#budget.giveBack(words.byteLength)
    this.#layers.length = 0
    this.#full = true
  }

  #mayHave(block: number, bits: number): boolean {
    for (const layer of this.#layers) if (has(layer, block, bits)) return true
    return false
  }

  #writable(): Layer | undefined {
    const last = this.#layers.at(-1)
    if (last !== undefined && last.ids < last.idsMax) return last
    const idsMax = last === undefined ? firstLayerIds : last.idsMax * layerGrowth
    const words = Math.ceil(idsMax * bitsPerId / 32 / blockWords) * blockWords
    if (!this.#budget.take(words * Int32Array.BYTES_PER_ELEMENT)) return undefined
    const layer = { words: new Int32Array(words), idsMax, ids: 0 }
    this.#layers.push(layer)
    return layer
  }
}

function has({ words }: Layer, block: number, bits: number): boolean {
  const base = blockStart({ words }, block)
  for (let probe = 0, bit = bits & blockBitsMask; probe < probes; probe++, bit = nextBit(bit, bits)) {
    if ((words[base + (bit >>> 5)]! & 1 << (bit & 31)) === 0) return false
  }
  return true
}

function blockStart({ words }: { readonly words: Int32Array }, block: number): number {
  return block % (words.length / blockWords) * blockWords
}

/** Returns the next probe by double hashing. The step is odd, so that all bits of the block can be reached. */
function nextBit(bit: number, bits: number): number {
  return bit + (bits >>> 9 | 1) & blockBitsMask
}

/**
 * Computes two hashes of the id's UTF-16 units: FNV-1a, and the same with another multiplier. Both are finally mixed as
 * in MurmurHash3.
 */
export function hashOf(id: string): { readonly block: number; readonly bits: number } {
  let first = 0x811c9dc5
  let second = 0x9e3779b9
  for (let index = 0; index < id.length; index++) {
    const unit = id.charCodeAt(index)
    first = Math.imul(first ^ unit, 0x01000193)
    second = Math.imul(second ^ unit, 0x85ebca6b)
  }
  return { block: mixed(first), bits: mixed(second) }
}

function mixed(hash: number): number {
  let bits = Math.imul(hash ^ hash >>> 16, 0x85ebca6b)
  bits = Math.imul(bits ^ bits >>> 13, 0xc2b2ae35)
  return (bits ^ bits >>> 16) >>> 0
}
