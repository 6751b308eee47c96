/** How many of `count` make a majority: what decides among voters and seeds, and the default of r and w. */
export function majority(count: number): number {
  return Math.floor(count / 2) + 1
}
