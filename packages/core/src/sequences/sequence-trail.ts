/**
 * A trail tells where a reader of one replica continues at another one, when the first is unreachable and the reader's
 * position says nothing about the second (docs/reference/changes.md#since-tokens). The second replica keeps the trail:
 * while it pushed its changes to the first one, it learned the sequences that they got there.
 *
 * A point means: a reader that has read the peer's changes up to `theirs` needs none of this replica's changes up to
 * `own`. Each document of these changes is in the peer's changes at `theirs` or before, with all revisions that this
 * replica has. Otherwise the peer has further revisions of it; anti-entropy brings these here, and the document gets a
 * new sequence.
 */
import type { TrailPoint } from '../contracts/shard-replica.ts'

/** Most points that are kept for each peer. */
export const trailPointsMax = 128
/** `thinTrail` first tries gaps of one part in this many of the changes that follow the gap's begin. */
const finestPart = 128

/** Adds the points that a pass has found. They hold for the changes after `base`, a point from before the pass. */
export function extendTrail(
  trail: readonly TrailPoint[], base: TrailPoint, points: readonly TrailPoint[],
): readonly TrailPoint[] {
  const extended = [...trail]
  for (const { theirs, own } of [base, ...points]) {
    const last = extended.at(-1)
    if (own <= (last?.own ?? 0)) continue
    // The points for earlier changes remain valid.
    if (last === undefined || theirs > last.theirs) extended.push({ theirs, own })
    else extended[extended.length - 1] = { theirs: last.theirs, own }
  }
  return thinTrail(extended, trailPointsMax)
}

/**
 * Removes points so that at most `max` are left. Gaps are small near the end of the trail: a gap that this function
 * makes is at most a fixed part of the changes after the gap's begin, an eighth for a million changes and 128 points.
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

/** Returns this replica's sequence after which a reader of the peer up to `sequence` continues here; 0: the start. */
export function followTrail(trail: readonly TrailPoint[], sequence: number): number {
  return trail.findLast(({ theirs }) => theirs <= sequence)?.own ?? 0
}
