/** The documents of the benchmark of views, and the map functions that index them. */

/** Adds random text, so that compression does not shrink the documents to almost nothing. */
function words(random: () => number, count: number): string {
  return Array.from({ length: count }, () => Math.floor(random() * 36 ** 7).toString(36)).join(' ')
}

/** Returns a generator of pseudo-random numbers from 0 to 1 (mulberry32), so that each run has the same documents. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns the JSON of an order of about 1,000 bytes with five lines. */
export function order(number: number): string {
  const random = randomNumbers(number)
  const below = (end: number): number => Math.floor(random() * end)
  return JSON.stringify({
    _id: `order-${String(number).padStart(8, '0')}`,
    type: 'order', number, customer: { id: below(5000), name: words(random, 2), city: words(random, 1) },
    date: [2026, 1 + below(12), 1 + below(28)], paid: below(2) === 1, note: words(random, 55),
    lines: Array.from({ length: 5 }, () => ({
      product: `product-${below(300)}`, count: 1 + below(9), price: below(10000) / 100,
      tags: [words(random, 1), words(random, 1)],
    })),
  })
}

/** Number of groups of `reading` documents. */
export const groupCount = 20

/** Returns the JSON of a small document that has one row in the view `readings`. */
export function reading(number: number): string {
  return JSON.stringify({ group: `group ${number % groupCount}`, number, value: number % 1000 })
}

export const simpleMap = 'function (doc) { if (doc.type === "order") emit(doc.date, doc.customer.id) }'

/** Emits five rows, one for each line, and reads each line and its tags in nested loops. */
export const heavyMap = `function (doc) {
  for (const line of doc.lines || []) {
    let length = 0
    let others = 0
    for (const tag of line.tags) for (const letter of tag) if (letter > "f") length++
    for (const other of doc.lines) if (other !== line) others += other.count * other.price
    emit([line.product, doc.date], { count: line.count, total: line.count * line.price, length, others })
  }
}`

export const readingsMap = 'function (doc) { emit([doc.group, doc.number], doc.value) }'
