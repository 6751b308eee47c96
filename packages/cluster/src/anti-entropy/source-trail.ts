import { thinTrail, trailPointsMax } from '@sectional/core'
import type { ChangeRow, ReplicaDiff, TrailExtension, TrailPoint } from '@sectional/core'

/** The number of points at which they are thinned. */
const pointsMax = 8 * trailPointsMax

/**
 * Learns from one pass which sequences of the target correspond to the source's changes. A reader that has read the
 * target up to a sequence can thus continue at the source (`core/sequences/sequence-trail.ts`).
 */
export class SourceTrail {
  readonly #history: string
  #base: TrailPoint
  #points: TrailPoint[] = []
  /**
   * Every processed change after the base is in the target's log at this sequence or before, or the target has other
   * leaves that will return to the source.
   */
  #theirs = 0
  /** True when some row is not at the target; nothing is known about the rows after it. */
  #broken = false

  /**
   * @param history the history of the target
   * @param base the target's sequence at which it had the source's changes up to `own`
   */
  constructor(history: string, base: TrailPoint) {
    this.#history = history
    this.#base = base
  }

  /**
   * Records rows that the target now has.
   * @param diffs the diffs of the rows of documents, taken before the target stored the missing revisions
   * @param stored the target's sequence after it stored them; undefined when it lacked none
   */
  reached(rows: readonly ChangeRow[], diffs: readonly ReplicaDiff[], stored: number | undefined): void {
    if (this.#broken) return
    let next = 0
    for (const { local, sequence: own } of rows) {
      const { missing, sequence, otherLeaves } = local ? noDocument : diffs[next++]!
      // If the target has other leaves of a document, these will be copied to the source and get a new row there.
      const theirs = missing.length > 0 ? stored! : otherLeaves ? 0 : sequence
      this.#theirs = Math.max(this.#theirs, theirs)
      this.#points.push({ theirs: this.#theirs, own })
    }
    if (this.#points.length > pointsMax) this.#points = [...thinTrail(this.#points, trailPointsMax)]
  }

  /** Call this when the target could not receive everything. */
  break(): void {
    this.#broken = true
  }

  /** Returns the extension to send to the source and clears it; undefined when there is none. */
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

const noDocument: Pick<ReplicaDiff, 'missing' | 'sequence' | 'otherLeaves'> = {
  missing: [], sequence: 0, otherLeaves: false,
}
