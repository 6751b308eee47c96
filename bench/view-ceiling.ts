/**
 * Measures the best that V8 can do with a map function: one process parses the bytes of documents from memory and calls
 * the function, whose rows it drops. Takes the source of the function, and the number of documents. Prints documents
 * per second and CPU microseconds per document as JSON.
 */
import { order } from './view-documents.ts'

const [source = '', count = ''] = process.argv.slice(2)
const documents = Array.from({ length: Number(count) }, (_, number) => Buffer.from(order(number)))
let rows: unknown[] = []
const emit = (key: unknown, value: unknown): void => { rows.push([key, value]) }
const map = new Function('emit', `return (${source})`)(emit) as (doc: unknown) => void

/** Returns the number of rows. */
function mapAll(): number {
  let emitted = 0
  for (const bytes of documents) {
    rows = []
    map(JSON.parse(bytes.toString()))
    emitted += rows.length
  }
  return emitted
}

mapAll()
const before = process.cpuUsage()
const startedAt = performance.now()
const emitted = mapAll()
const elapsedMs = performance.now() - startedAt
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({
  perSecond: documents.length / elapsedMs * 1000, cpuUs: (user + system) / documents.length, rows: emitted,
}))
