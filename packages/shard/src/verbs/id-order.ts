/**
 * Positions by id, those of one id in their order: so one call's rows stand in the changes log by id, as in
 * CouchDB, and LevelDB is given sorted keys.
 */
export function inIdOrder(items: readonly { readonly id: string }[]): number[] {
  const order = items.map((_, index) => index)
  if (order.length < 2) return order
  return order.sort((a, b) => {
    const left = items[a]!.id
    const right = items[b]!.id
    return left < right ? -1 : left > right ? 1 : a - b
  })
}
