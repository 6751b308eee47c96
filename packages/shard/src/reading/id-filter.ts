const bitsPerId = 16
const probes = 7
/** A block is one cache line: all probes of an id fall into one. */
const blockWords = 16
const blockBitsMask = blockWords * 32 - 1
const firstLayerIds = 512
/** Each layer more is looked into for every id that is new. */
const layerGrowth = 4

/** Bytes that the filters of one node may take together. */
export class FilterBudget {
  #left: number

  constructor(bytes: number) {
    this.#left = bytes
  }

  /** False when there is too little left. */
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
 * Tells of an id that it was never added, without a look at the disk: a chain of blocked Bloom filters (Putze,
 * Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007), each four times as large as the one before.
 * About one id in a hundred that was never added is taken for one that may have been. Takes 2.7 to 8 bytes an id.
 */
export class IdFilter {
  readonly #budget: FilterBudget
  readonly #layers: Layer[] = []
  #full = false

  constructor(budget: FilterBudget) {
    this.#budget = budget
  }

  /** The budget did not suffice: the filter has forgotten everything and must not be asked any more. */
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

  /** False only for an id that was never added. */
  mayHave(id: string): boolean {
    const { block, bits } = hashOf(id)
    return this.#mayHave(block, bits)
  }

  /** Gives the memory back; the filter is full from then on. */
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

/** Double hashing: an odd step reaches every bit of the block. */
function nextBit(bit: number, bits: number): number {
  return bit + (bits >>> 9 | 1) & blockBitsMask
}

/** Two hashes of the id's UTF-16 units (FNV-1a and a second multiplier), mixed at the end as MurmurHash3 does. */
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
