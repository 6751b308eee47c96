/**
 * Shortens the schedule of a failing seed. It removes ever smaller parts of the schedule as long as the rest fails in
 * the same way (delta debugging, Zeller and Hildebrandt 2002). Each part draws from a random stream of its own, so the
 * remaining parts behave about as before.
 */
import { runSwarm } from '../swarm/swarm-run.ts'
import type { SwarmHooks, SwarmResult } from '../swarm/swarm-run.ts'

export interface Minimised {
  /** The shortest run that fails in the same way. */
  readonly result: SwarmResult
  readonly stepsBefore: number
  readonly runs: number
}

export interface MinimiseOptions {
  readonly seed: number
  /** Maximum number of runs. */
  readonly runsMax: number
  /** Called for each run, so that a planted bug does not keep state from one run to the next. */
  readonly hooks?: () => SwarmHooks
}

/** @returns null when the seed does not fail */
export async function minimise({ seed, runsMax, hooks = () => ({}) }: MinimiseOptions): Promise<Minimised | null> {
  let best = await runSwarm(seed, hooks())
  if (best.failure === undefined) return null
  const stepsBefore = best.steps.length
  let runs = 1
  let parts = 2
  while (best.steps.length > 1 && runs < runsMax) {
    const shorter = await leaveOutOne(best, parts)
    if (shorter !== null) {
      best = shorter
      parts = Math.max(2, parts - 1)
    } else if (parts < best.steps.length) parts = Math.min(best.steps.length, parts * 2)
    else break
  }
  return { result: best, stepsBefore, runs }

  /** Returns the first run without one of `count` equal parts of the schedule that still fails, or null. */
  async function leaveOutOne(from: SwarmResult, count: number): Promise<SwarmResult | null> {
    const size = Math.ceil(from.steps.length / count)
    // Begin at the end of the schedule, because the last steps are the ones that are most often not needed.
    for (let at = (count - 1) * size; at >= 0 && runs < runsMax; at -= size) {
      const only = new Set([...from.steps.slice(0, at), ...from.steps.slice(at + size)])
      if (only.size === from.steps.length) continue
      runs++
      const result = await runSwarm(seed, { ...hooks(), only })
      if (result.failure?.kind === from.failure?.kind && result.failure?.finder === from.failure?.finder) return result
    }
    return null
  }
}
