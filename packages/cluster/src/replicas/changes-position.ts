import type { HashRange, ReplicaCheckpoint, SincePart } from '@sectional/core'
import type { ReplicaHistories } from './replica-histories.ts'

/** One replica as it was when it told where it stands. */
export interface ReplicaSource {
  readonly node: string
  readonly history: string
  /** Where it stood. */
  readonly sequence: number
  /** What it had of others then: history -> sequence. */
  readonly seen: Readonly<Record<string, number>>
  /**
   * Itself and the other replicas of its range, by node, with what it had of each: the same list whichever of them
   * is asked, since all have what the others have. Absent where that is not so, or not known.
   */
  readonly all?: readonly ReplicaPlace[]
}

export interface ReplicaPlace { readonly node: string; readonly history: string; readonly sequence: number }

interface Reached { readonly node: string; readonly sequence: number }

/** Histories besides the one being read that a token carries for each range. */
const othersMax = 4

/**
 * How far one reader has come in one range: how far on the replica that it reads, and what that implies for
 * others. What a replica had of another when it stood at S is known to the reader once it has read up to S.
 */
export class ShardPosition {
  readonly #range: HashRange
  readonly #histories: ReplicaHistories
  #node = ''
  #history: string | undefined
  #sequence = 0
  #absorbed: ReplicaSource | undefined
  /** By history, the latest known last. */
  #others: Map<string, Reached> | undefined
  /** The others as parts of a token, made once for many rows. */
  #otherParts: readonly SincePart[] | undefined

  /** @param parts of a token, those of other ranges too: what was read of a wider range holds for this one */
  constructor(range: HashRange, parts: readonly SincePart[], histories: ReplicaHistories) {
    this.#range = range
    this.#histories = histories
    for (const { range: { begin, end }, node, history, sequence } of parts) {
      if (begin > range.begin || end < range.end) continue
      if (this.#history === undefined) [this.#node, this.#history, this.#sequence] = [node, history, sequence]
      else this.#learn(history, node, sequence)
    }
  }

  /** Nothing was read and nothing is known. */
  get isEmpty(): boolean { return this.#history === undefined }
  /** Where the replica was that was read last; empty when that is not known. */
  get node(): string { return this.#node }
  /** The life of the replica that is read. */
  get history(): string | undefined { return this.#history }
  /** On the replica that is read. */
  get sequence(): number { return this.#sequence }

  /** Whether it is told in the order of nodes, as all places are that all replicas have reached, and some others. */
  get isByNode(): boolean {
    const parts = this.parts()
    return parts.every(({ node }, index) => index === 0 || parts[index - 1]!.node < node)
  }

  /** Up to where a replica of that history needs not to be read again. */
  known(history: string): number | undefined {
    return history === this.#history ? this.#sequence : this.#others?.get(history)?.sequence
  }

  /** All that is known: what was read, and what that implies. */
  checkpoints(): ReplicaCheckpoint[] {
    return this.parts().map(({ history, sequence }) => ({ history, sequence }))
  }

  /** Everything of the source up to `sequence` has been read. */
  reach(source: ReplicaSource, sequence: number): void {
    if (this.#history !== source.history) {
      if (this.#history !== undefined) this.#learn(this.#history, this.#node, this.#sequence)
      this.#others?.delete(source.history)
      this.#otherParts = undefined
      this.#absorbed = undefined
      this.#history = source.history
    }
    this.#node = source.node
    this.#sequence = sequence
    if (sequence < source.sequence || this.#absorbed === source) return
    this.#absorbed = source
    for (const [history, seen] of Object.entries(source.seen)) {
      if (history !== this.#history) this.#learn(history, this.#histories.node(history) ?? '', seen)
    }
  }

  /** The replica that is read first; in the order of nodes where the reader stands just where the replica stood. */
  parts(): SincePart[] {
    if (this.#history === undefined) return []
    const range = this.#range
    const { all, sequence: end } = this.#absorbed ?? {}
    if (all !== undefined && end === this.#sequence) {
      return all.map(({ node, history, sequence }) => ({ range, node, history, sequence: Math.max(sequence, this.known(history) ?? 0) }))
    }
    this.#otherParts ??= Array.from(this.#others ?? [], ([history, { node, sequence }]) => ({ range, node, history, sequence }))
    const read = { range, node: this.#node, history: this.#history, sequence: this.#sequence }
    return this.#otherParts.length === 0 ? [read] : [read, ...this.#otherParts]
  }

  #learn(history: string, node: string, sequence: number): void {
    const others = this.#others ??= new Map()
    this.#otherParts = undefined
    const before = others.get(history)
    others.delete(history)
    others.set(history, { node: node || (before?.node ?? ''), sequence: Math.max(sequence, before?.sequence ?? 0) })
    if (others.size <= othersMax) return
    // Lives that nobody here has met lately are most likely over.
    const stale = [...others].find(([, reached]) => reached.node === '') ?? [...others][0]!
    others.delete(stale[0])
  }
}
