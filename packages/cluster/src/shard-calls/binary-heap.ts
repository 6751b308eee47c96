/** A binary heap in an array: its first element comes before all others. */

/** Orders the elements of an array as a heap. */
export function makeHeap<Element>(heap: Element[], before: (a: Element, b: Element) => boolean): void {
  for (let at = (heap.length >> 1) - 1; at >= 0; at--) sink(heap, at, before)
}

/** Restores the order after the element at `from` was replaced by one that comes later, or by any one at 0. */
export function sink<Element>(heap: Element[], from: number, before: (a: Element, b: Element) => boolean): void {
  let at = from
  for (;;) {
    const left = 2 * at + 1
    const right = left + 1
    let first = at
    if (left < heap.length && before(heap[left]!, heap[first]!)) first = left
    if (right < heap.length && before(heap[right]!, heap[first]!)) first = right
    if (first === at) return
    const moved = heap[at]!
    heap[at] = heap[first]!
    heap[first] = moved
    at = first
  }
}

/** Adds an element. */
export function push<Element>(heap: Element[], element: Element, before: (a: Element, b: Element) => boolean): void {
  let at = heap.length
  heap.push(element)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!before(element, heap[parent]!)) break
    heap[at] = heap[parent]!
    at = parent
  }
  heap[at] = element
}
