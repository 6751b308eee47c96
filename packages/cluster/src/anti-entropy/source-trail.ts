import { thinTrail, trailPointsMax } from '@sectional/core'
import type { ChangeRow, ReplicaDiff, TrailExtension, TrailPoint } from '@sectional/core'

/** Points are thinned when there are so many. */
const pointsMax = 8 * trailPointsMax

/**
 * Learns from one pass where the source's changes stand in the target's log, so that whoever has read the target
 * can go on at the source (`core/sequences/sequence-trail.ts`).
 */
export class SourceTrail {
  readonly #history: string
  #base: TrailPoint
  #points: TrailPoint[] = []
  /** Everything behind the base that was looked at stands here or before, or will come back to the source. */
  #theirs = 0
  /** Some row is not at the target: nothing behind it can be told. */
  #broken = false

  /**
   * @param history of the target
   * @param base where the target stood when it had the source's changes up to `own`
   */
  constructor(history: string, base: TrailPoint) {
    this.#history = history
    this.#base = base
  }

  /**
   * Rows that the target now has.
   * @param diffs of those of documents, before the target got what it lacked
   * @param stands where the target stood when it had got that; absent: it lacked nothing
   */
  reached(rows: readonly ChangeRow[], diffs: readonly ReplicaDiff[], stands: number | undefined): void {
    if (this.#broken) return
    let next = 0
    for (const { local, sequence: own } of rows) {
      const { missing, sequence, otherLeaves } = local ? noDocument : diffs[next++]!
      // A document of which the target has more comes from there, and gets a new row here.
      const theirs = missing.length > 0 ? stands! : otherLeaves ? 0 : sequence
      this.#theirs = Math.max(this.#theirs, theirs)
      this.#points.push({ theirs: this.#theirs, own })
    }
    if (this.#points.length > pointsMax) this.#points = [...thinTrail(this.#points, trailPointsMax)]
  }

  /** The target could not be given everything. */
  break(): void {
    this.#broken = true
  }

  /** What is to be told to the source, once; undefined: nothing. */
  take(): TrailExtension | undefined {
    const points = thinTrail(this.#points, trailPointsMax)
    const last = points.at(-1)
    if (last === undefined) return undefined
    const extension = { history: this.#history, base: this.#base, points }
    this.#base = last
    this.#points = []
    return extension
  }
}

const noDocument: Pick<ReplicaDiff, 'missing' | 'sequence' | 'otherLeaves'> = { missing: [], sequence: 0, otherLeaves: false }
