import { extendTrail } from '@sectional/core'
import type { TrailExtension, TrailPoint } from '@sectional/core'

/** Extensions of one peer that may be held. */
const heldMax = 16
/** Held are extensions that add less than this part of all changes, or so few of them. */
const heldPart = 64
const heldSequences = 8

/**
 * Trails that are not worth a write of their own yet. A crash loses them, and with them no more than that readers of
 * the peer go on a little earlier here.
 */
export class HeldTrails {
  readonly #held = new Map<string, readonly TrailExtension[]>()

  /** The stored trail with what is held. */
  extended(history: string, stored: readonly TrailPoint[]): readonly TrailPoint[] {
    return (this.#held.get(history) ?? []).reduce((trail, { base, points }) => extendTrail(trail, base, points), stored)
  }

  /** @returns the trail that is to be written now; undefined: held */
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

  /** They are in a batch. */
  written(history: string): void {
    this.#held.delete(history)
  }
}
