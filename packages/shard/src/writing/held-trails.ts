import { extendTrail } from '@sectional/core'
import type { TrailExtension, TrailPoint } from '@sectional/core'

/** The maximum number of held extensions of one peer. */
const heldMax = 16
/**
 * An extension is held when it adds fewer than `heldSequences` sequences, or less than this fraction of all changes.
 */
const heldPart = 64
const heldSequences = 8

/**
 * Keeps trail extensions in memory until enough of them have been collected for a write. A crash loses them; readers
 * that come from that peer then continue here at a slightly earlier sequence.
 */
export class HeldTrails {
  readonly #held = new Map<string, readonly TrailExtension[]>()

  /** Returns the stored trail with the held extensions applied. */
  extended(history: string, stored: readonly TrailPoint[]): readonly TrailPoint[] {
    return (this.#held.get(history) ?? []).reduce((trail, { base, points }) => extendTrail(trail, base, points), stored)
  }

  /** @returns the trail to write now; undefined when the extension is held */
  add(extension: TrailExtension, stored: readonly TrailPoint[]): readonly TrailPoint[] | undefined {
    const { history } = extension
    const before = this.#held.get(history) ?? []
    const own = extension.points.at(-1)?.own ?? 0
    const held = [...before, extension]
    if (held.length < heldMax && own - (stored.at(-1)?.own ?? 0) < Math.max(heldSequences, own / heldPart)) {
      this.#held.set(history, held)
      return undefined
    }
    const trail = extendTrail(this.extended(history, stored), extension.base, extension.points)
    return trail.at(-1)?.own === stored.at(-1)?.own ? undefined : trail
  }

  /** Call this after the held extensions were put into a batch. */
  written(history: string): void {
    this.#held.delete(history)
  }
}
