/** Whether two lists have the same elements in the same order. */
export function haveSameElements<Element>(a: readonly Element[], b: readonly Element[]): boolean {
  return a.length === b.length && a.every((element, at) => element === b[at])
}
