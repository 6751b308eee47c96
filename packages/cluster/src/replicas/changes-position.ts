import type { HashRange, ReplicaCheckpoint, SincePart } from '@sectional/core'
import type { ReplicaHistories } from './replica-histories.ts'

/** What a replica reported about itself at one moment. */
export interface ReplicaSource {
  readonly node: string
  readonly history: string
  /** The replica's sequence at that moment. */
  readonly sequence: number
  /** For each history of another replica, the sequence up to which this replica had its changes then. */
  readonly seen: Readonly<Record<string, number>>
  /**
   * This replica and the other replicas of its range, sorted by node, each with the sequence up to which its changes
   * are known. Present only when every replica has all changes of the others; the list is then the same whichever of
   * them is asked.
   */
  readonly all?: readonly ReplicaPlace[]
}

export interface ReplicaPlace { readonly node: string; readonly history: string; readonly sequence: number }

interface Reached { readonly node: string; readonly sequence: number }

/** Largest number of histories, besides the one that is read, that a token carries for each range. */
const othersMax = 4

/**
 * A reader's position in one range: the sequence on the replica that it reads, and the sequences on other replicas that
 * this implies. If the replica had another replica's changes up to some sequence when its own last sequence was S, a
 * reader that has read up to S has them too.
 */
export class ShardPosition {
  readonly #range: HashRange
  readonly #histories: ReplicaHistories
  #node = ''
  #history: string | undefined
  #sequence = 0
  #absorbed: ReplicaSource | undefined
  /** Keys are histories; the one that was learned last comes last. */
  #others: Map<string, Reached> | undefined
  /** The others as parts of a token, computed once for many rows. */
  #otherParts: readonly SincePart[] | undefined

  /**
   * @param parts parts of a token. Parts of other ranges are allowed: those of a wider range are valid for this one too
   */
  constructor(range: HashRange, parts: readonly SincePart[], histories: ReplicaHistories) {
    this.#range = range
    this.#histories = histories
    for (const { range: { begin, end }, node, history, sequence } of parts) {
      if (begin > range.begin || end < range.end) continue
      if (this.#history === undefined) [this.#node, this.#history, this.#sequence] = [node, history, sequence]
      else this.#learn(history, node, sequence)
    }
  }

  /** True when nothing was read and no sequence is known. */
  get isEmpty(): boolean { return this.#history === undefined }
  /** The node of the replica that was read last; empty when unknown. */
  get node(): string { return this.#node }
  /** The history of the replica that is read. */
  get history(): string | undefined { return this.#history }
  /** The sequence on the replica that is read. */
  get sequence(): number { return this.#sequence }

  /**
   * Returns true when the parts are in the order of nodes. This holds for every position that all replicas have
   * reached, and by chance for some others.
   */
  get isByNode(): boolean {
    const parts = this.parts()
    return parts.every(({ node }, index) => index === 0 || parts[index - 1]!.node < node)
  }

  /** Returns the sequence up to which a replica with this history need not be read again; undefined when unknown. */
  known(history: string): number | undefined {
    return history === this.#history ? this.#sequence : this.#others?.get(history)?.sequence
  }

  /** Returns all known checkpoints: that of the replica that was read, and those that it implies. */
  checkpoints(): ReplicaCheckpoint[] {
    return this.parts().map(({ history, sequence }) => ({ history, sequence }))
  }

  /** Records that every change of the source up to `sequence` was read. */
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

  /**
   * Returns the parts for a token. The replica that is read comes first, unless the list of all replicas is known for
   * exactly this sequence; the parts are then in the order of nodes.
   */
  parts(): SincePart[] {
    if (this.#history === undefined) return []
    const range = this.#range
    const { all, sequence: end } = this.#absorbed ?? {}
    if (all !== undefined && end === this.#sequence) {
      return all.map(({ node, history, sequence }) =>
        ({ range, node, history, sequence: Math.max(sequence, this.known(history) ?? 0) }))
    }
    this.#otherParts ??= Array.from(this.#others ?? [], ([history, { node, sequence }]) =>
      ({ range, node, history, sequence }))
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
    // Histories that were not found on any node lately probably no longer exist.
    const stale = [...others].find(([, reached]) => reached.node === '') ?? [...others][0]!
    others.delete(stale[0])
  }
}
