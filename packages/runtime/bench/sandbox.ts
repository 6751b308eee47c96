/**
 * Measures calls of functions of design documents in child processes: the time for each document, and the CPU time of
 * this process and of the child. Linux only. Run:
 *   node --conditions=sectional-source packages/runtime/bench/sandbox.ts
 */
import { readdirSync, readFileSync } from 'node:fs'
import { RealClock } from '../src/clock/clock-real.ts'
import { MemoryLog } from '../src/log/log-memory.ts'
import { PrometheusMetrics } from '../src/metrics/metrics-prom.ts'
import { processUsage } from '../src/sandbox/child/process-usage.ts'
import { defaultSandboxLimits, type SandboxFunction } from '../src/sandbox/sandbox.ts'
import { IsolateSandbox } from '../src/sandbox/sandbox-isolates.ts'

const documentBytes = 1000
const rounds = 3
const roundMs = 700

const sandbox = new IsolateSandbox({
  clock: new RealClock(), log: new MemoryLog(), metrics: new PrometheusMetrics(),
  limits: { ...defaultSandboxLimits, childrenMax: 1 },
})
const items: object[] = []
const document = { _id: 'document', _rev: '1-0123', type: 'order', n: 1, items, text: 'x'.repeat(300) }
while (JSON.stringify(document).length < documentBytes) items.push({ sku: `sku${items.length}`, count: 3 })
const text = JSON.stringify(document)
const bytes = Buffer.from(text)

const simple = functionOf('function (doc) { emit(doc.type, doc.n) }')
const validation = functionOf(`function (newDoc, oldDoc, userCtx) {
  if (!newDoc.type) throw { forbidden: 'type is missing' }
  if (newDoc.n < 0) throw { forbidden: 'n is negative' }
  if (oldDoc && oldDoc.type !== newDoc.type) throw { forbidden: 'type is fixed' }
}`)
const validated = `[${text},${text},{"name":"a","roles":[]},{}]`

const start = performance.now()
await sandbox.call(functionOf('x => x'), ['[1]'])
const startMs = performance.now() - start
const child = childOf(process.pid)
console.log(`start of a child, with the first answer: ${startMs.toFixed(0)} ms, ${resident()}`)

const hundred = Array<Uint8Array>(100).fill(bytes)
await measure('map, 100 documents a call', 100, () => sandbox.map(simple, hundred))
await measure('map, 4 calls of 100 documents at a time', 400, () => times(4, () => sandbox.map(simple, hundred)))
await measure('map, 1 document a call', 1, () => sandbox.map(simple, [bytes]))
await measure('map, 4 calls of 1 document at a time', 4, () => times(4, () => sandbox.map(simple, [bytes])))
await measure('validation, 1 at a time', 1, () => sandbox.call(validation, [validated]))
await measure('validation, 64 in a turn', 64, () => times(64, () => sandbox.call(validation, [validated])))
await measure('the map function in this process', 100, async () => {
  for (let n = 0; n < 100; n++) {
    const { type, n: value } = JSON.parse(text) as typeof document
    if (JSON.stringify(type).length + JSON.stringify(value).length === 0) throw new Error('no row')
  }
})
const before = performance.now()
for (let n = 0; n < 15; n++) await sandbox.call(functionOf('x => x', `database${n}`), ['[1]'])
console.log(`another isolate: ${((performance.now() - before) / 15).toFixed(1)} ms; 16 isolates: ${resident()}`)
sandbox.close()

/** Prints the best of several rounds, in microseconds for one of `count` items. */
async function measure(name: string, count: number, run: () => Promise<unknown>): Promise<void> {
  let best = { wall: Infinity, parent: 0, child: 0 }
  for (let round = 0; round < rounds; round++) {
    const began = performance.now()
    const cpu = process.cpuUsage()
    const childMs = processUsage(child)?.cpuMs ?? 0
    let done = 0
    for (; performance.now() - began < roundMs; done += count) await run()
    const wall = (performance.now() - began) * 1000 / done
    const { user, system } = process.cpuUsage(cpu)
    const childUsed = ((processUsage(child)?.cpuMs ?? 0) - childMs) * 1000
    if (wall < best.wall) best = { wall, parent: (user + system) / done, child: childUsed / done }
  }
  const [wall, parent, used] = [best.wall, best.parent, best.child].map(value => value.toFixed(1))
  console.log(`${name}: ${wall} us; CPU of this process ${parent} us, of the child ${used} us`)
}

function times(count: number, run: () => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, run))
}

function functionOf(source: string, database = 'database'): SandboxFunction {
  return { database, designDocument: '_design/d', modules: '{}', source }
}

function childOf(parent: number): number {
  const found = readdirSync('/proc').map(Number).find(pid => pid > 0 && parentOf(pid) === parent)
  if (found === undefined) throw new Error('The sandbox has no child process')
  return found
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])
  } catch {
    return undefined
  }
}

function resident(): string {
  return `${processUsage(child)?.residentMiB.toFixed(0)} MiB resident`
}
