/**
 * Measures the CPU time of sort keys, for docs/decisions/0015-collation.md: run `node
 * --conditions=sectional-source bench/sort-keys.ts [rounds=5]`. Prints microseconds of CPU per key, the best round of
 * each kind, the length of a key, and the time of the first key, which includes decoding the table.
 */
import { SortKeyEncoder } from '@sectional/core'
import type { Collation } from '@sectional/core'

const rounds = Number(process.argv[2] ?? 5)
const keysPerRound = 100_000

/** Values by kind. They differ, as the keys of a view do. */
const values: Readonly<Record<string, readonly unknown[]>> = {
  '20 ASCII characters': texts(20, 0x61, 26),
  'the same with one accent': texts(19, 0x61, 26).map(text => `${text}é`),
  '100 ASCII characters': texts(100, 0x61, 26),
  '20 Greek letters': texts(20, 0x3b1, 25),
  '20 Han characters': texts(20, 0x4e00, 20_000),
  '20 Hangul syllables': texts(20, 0xac00, 11_000),
  'integer': list(i => i),
  'fraction': list(i => i / 7),
  '[string of 8, integer, integer]': texts(8, 0x61, 26).map((text, i) => [text, 2000 + i % 20, i]),
  '{"name": string of 8}': texts(8, 0x61, 26).map(name => ({ name })),
}

function list<T>(value: (i: number) => T): T[] {
  return Array.from({ length: 1000 }, (_, i) => value(i))
}

function texts(length: number, first: number, count: number): string[] {
  let state = 1
  return list(() => String.fromCharCode(...Array.from({ length }, () => {
    state = Math.imul(state, 0x41c64e6d) + 12345 >>> 0
    return first + (state >>> 8) % count
  })))
}

function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Returns the microseconds of CPU and the number of bytes per key. */
function measure(encoder: SortKeyEncoder, from: readonly unknown[]): { time: number; length: number } {
  let time = Infinity
  let length = 0
  for (let round = 0; round < rounds; round++) {
    length = 0
    const start = cpuMicroseconds()
    for (let i = 0; i < keysPerRound; i++) length += encoder.encode(from[i % from.length]).length
    time = Math.min(time, (cpuMicroseconds() - start) / keysPerRound)
  }
  return { time, length: length / keysPerRound }
}

const start = cpuMicroseconds()
new SortKeyEncoder().encode('first')
console.log(`first key: ${((cpuMicroseconds() - start) / 1000).toFixed(1)} ms`)
for (const collation of ['root', 'raw'] satisfies Collation[]) {
  const encoder = new SortKeyEncoder(collation)
  for (const [kind, from] of Object.entries(values)) {
    const { time, length } = measure(encoder, from)
    console.log(`${collation}, ${kind}: ${time.toFixed(2)} us, ${length.toFixed(1)} bytes`)
  }
}
