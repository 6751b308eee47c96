/**
 * Measures built-in reduce functions in memory: run `node --conditions=sectional-source bench/reduces.ts [rounds=5]`.
 * Prints, for each function and kind of values, nanoseconds of CPU per row and millions of rows per second of CPU for
 * runs of 100 rows (start, add, encode), nanoseconds per state when states of such runs are combined, and the bytes of
 * a state; the best of the rounds.
 */
import { builtInReduce, SortKeyEncoder, type ReducedRow } from '@sectional/core'

const rounds = Number(process.argv[2] ?? 5)
const rowsPerRound = 500_000
const runLength = 100

const cases: readonly (readonly [name: string, kind: string, value: (i: number) => unknown])[] = [
  ['_count', 'any', i => i],
  ['_sum', 'integers', i => i % 1000],
  ['_sum', 'amounts such as 12.34', i => i % 10_000 / 100],
  ['_sum', 'arrays of 3 integers', i => [1, i, i % 10]],
  ['_sum', 'objects of 3 integers', i => ({ visits: 1, bytes: i, errors: i % 10 })],
  ['_stats', 'integers', i => i % 1000],
  ['_stats', 'amounts such as 12.34', i => i % 10_000 / 100],
  ['_approx_count_distinct', 'keys that all differ', i => i],
  ['_first', 'integers', i => i],
  ['_top_10', 'integers', i => i * 7919 % 100_003],
]

function cpuNanoseconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) * 1000
}

function rowsOf(value: (i: number) => unknown): readonly ReducedRow[] {
  const keys = new SortKeyEncoder()
  return Array.from({ length: 10_000 }, (_, i) =>
    ({ key: keys.encode(i), id: `doc-${i}`, number: 0, value: Buffer.from(JSON.stringify(value(i))) }))
}

interface Figures { readonly row: number; readonly state: number; readonly bytes: number }

function measure(name: string, rows: readonly ReducedRow[]): Figures {
  const reduce = builtInReduce(name)!
  const states: Uint8Array[] = []
  let start = cpuNanoseconds()
  for (let at = 0; at < rowsPerRound;) {
    const reduction = reduce.start()
    for (const end = at + runLength; at < end; at++) reduction.addRow(rows[at % rows.length]!)
    states.push(reduction.encode())
  }
  const row = (cpuNanoseconds() - start) / rowsPerRound
  start = cpuNanoseconds()
  for (let at = 0; at < states.length;) {
    const reduction = reduce.start()
    for (const end = at + runLength; at < end; at++) reduction.addState(states[at]!)
    reduction.encode()
  }
  return { row, state: (cpuNanoseconds() - start) / states.length, bytes: states[0]!.length }
}

console.log('| function | values | ns/row | million rows/s | ns/state | bytes/state |\n|---|---|---|---|---|---|')
for (const [name, kind, value] of cases) {
  const rows = rowsOf(value)
  const all = Array.from({ length: rounds }, () => measure(name, rows))
  const row = Math.min(...all.map(figures => figures.row))
  const state = Math.min(...all.map(figures => figures.state))
  const rate = (1000 / row).toFixed(1)
  console.log(`| \`${name}\` | ${kind} | ${row.toFixed(0)} | ${rate} | ${state.toFixed(0)} | ${all[0]!.bytes} |`)
}
