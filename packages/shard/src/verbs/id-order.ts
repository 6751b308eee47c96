/**
 * Returns the positions of items sorted by id; items of the same id keep their order. The rows of one call are
 * therefore in the order of ids in the changes log, as in CouchDB, and LevelDB gets sorted keys.
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
