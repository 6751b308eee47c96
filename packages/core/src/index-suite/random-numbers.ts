/** Returns a function that returns numbers from 0 to below its argument, the same ones for the same seed. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    // The constants of Numerical Recipes' linear congruential generator; the high bits are the random ones.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}
