/** Returns how many of `count` are a majority. Voters, seeds and the defaults of r and w use it. */
export function majority(count: number): number {
  return Math.floor(count / 2) + 1
}
