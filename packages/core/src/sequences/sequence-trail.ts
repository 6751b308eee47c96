/**
 * Where a reader of one replica goes on at another, when the first is away and the reader's place says nothing of the
 * second (docs/reference/changes.md#since-tokens). The replica that goes on keeps the answer: while it pushed its
 * changes to the first one, it learned where each of them stands there.
 *
 * A point says: who has read the peer's changes up to `theirs` needs none of the own ones up to `own`, because each
 * of those documents stands in the peer's log at `theirs` or before, with all revisions that this replica has; or
 * the peer has more of it, which comes here by anti-entropy and gives the document a new sequence.
 */
import type { TrailPoint } from '../contracts/shard-replica.ts'

/** Points kept for each peer. */
export const trailPointsMax = 128
/** First try of what part of the changes that are left may lie between two points. */
const finestPart = 128

/** Adds what a pass has learned; `points` hold for the rows behind `base`, which held before the pass. */
export function extendTrail(
  trail: readonly TrailPoint[], base: TrailPoint, points: readonly TrailPoint[],
): readonly TrailPoint[] {
  const extended = [...trail]
  for (const { theirs, own } of [base, ...points]) {
    const last = extended.at(-1)
    if (own <= (last?.own ?? 0)) continue
    // What was said of earlier rows stands.
    if (last === undefined || theirs > last.theirs) extended.push({ theirs, own })
    else extended[extended.length - 1] = { theirs: last.theirs, own }
  }
  return thinTrail(extended, trailPointsMax)
}

/**
 * Leaves out points so that at most `max` are left, and gaps are small where little is left to be read: no gap that
 * this makes is longer than a part of what lies behind its begin, an eighth with a million changes and 128 points.
 */
export function thinTrail(trail: readonly TrailPoint[], max: number): readonly TrailPoint[] {
  let kept = trail
  for (let part = finestPart; kept.length > max && part >= 1; part /= 2) kept = withGaps(trail, part)
  return kept
}

function withGaps(trail: readonly TrailPoint[], part: number): TrailPoint[] {
  const end = trail.at(-1)!.theirs
  let before = 0
  return trail.filter(({ theirs }, index) => {
    const next = trail[index + 1]
    if (next !== undefined && next.theirs - before <= (end - before) / part) return false
    before = theirs
    return true
  })
}

/** Own sequence behind which a reader goes on who has read the peer up to `sequence`; 0: at the start. */
export function followTrail(trail: readonly TrailPoint[], sequence: number): number {
  return trail.findLast(({ theirs }) => theirs <= sequence)?.own ?? 0
}
