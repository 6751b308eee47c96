import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { heapGrowthPercent } from '../src/command-line/v8-flags.ts'

const MiB = 1024 * 1024
const flagsModule = fileURLToPath(new URL('../src/command-line/v8-flags.ts', import.meta.url))

/** Prints the flags that were set before and after a collection that leaves 100 to 200 MB in the old generation. */
const program = `
  import { setTimeout as pause } from 'node:timers/promises'
  import { setV8Flags } from ${JSON.stringify(flagsModule)}
  const flags = []
  setV8Flags(flag => flags.push(flag))
  const before = flags.length
  const live = Array.from({ length: 2_000_000 }, (_, number) => ({ number, half: number / 2 }))
  gc()
  while (flags.length === before) await pause(5)
  console.log(JSON.stringify({ first: flags.slice(0, before), last: flags.at(-1), live: live.length }))
`

describe('the growth of the heap of a node', () => {
  const limit = 4096 * MiB

  it('is 96 MiB between collections, but at most three times the heap', () => {
    assert.deepEqual([10, 32, 48, 96, 192].map(live => heapGrowthPercent(live * MiB, limit)), [300, 300, 200, 100, 50])
  })

  it('is left to V8 when the heap is large', () => {
    assert.equal(heapGrowthPercent(320 * MiB, limit), 30)
    assert.equal(heapGrowthPercent(340 * MiB, limit), 0)
    assert.equal(heapGrowthPercent(3000 * MiB, limit), 0)
  })

  it('is at most an eighth of the limit of the heap', () => {
    assert.equal(heapGrowthPercent(32 * MiB, 512 * MiB), 200)
    assert.equal(heapGrowthPercent(64 * MiB, 128 * MiB), 0)
  })

  it('is chosen again after each collection of the whole heap', async () => {
    const { stdout } = await promisify(execFile)(process.execPath,
      ['--expose-gc', '--input-type=module', '--eval', program], { timeout: 60_000 })
    const { first, last } = JSON.parse(stdout) as { first: string[]; last: string }
    assert.deepEqual(first, ['--no-allocation-site-pretenuring', '--heap-growing-percent=300'])
    const percent = Number(/^--heap-growing-percent=(\d+)$/.exec(last)?.[1])
    assert.ok(percent >= 30 && percent < 150, `a heap of 100 to 200 MB may grow by ${percent} %`)
  })
})
