import { expect } from 'chai'
import type { EditOutcome } from '@sectional/core'
import { ManualClock, MemoryDisk, MemoryStorage } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import type { ShardEngine } from '../../src/index.ts'
import { context, edit, shardA, shardRuntime } from '../shard-world.ts'

const stored = 1500

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
}

/** Waits until the work in the background has ended. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(resolve => setImmediate(resolve))
}

describe('new documents', () => {
  let disk: MemoryDisk
  let host: ShardHost
  let engine: ShardEngine
  let reads = 0

  beforeEach(async () => {
    disk = new MemoryDisk()
    await open()
  })

  afterEach(() => host.close())

  async function open(): Promise<void> {
    host = await ShardHost.open(shardRuntime(new MemoryStorage(disk), new ManualClock()))
    engine = await host.create(shardA)
    disk.setFaults({ failRead: () => { reads++; return undefined } })
  }

  async function kinds(ids: readonly string[]): Promise<Set<EditOutcome['kind']>> {
    const reply = await engine.updateDocuments({ edits: ids.map(id => edit(id, null, {})), revsLimit: 1000 }, context)
    if (reply.kind !== 'decided') throw new Error(reply.kind)
    await turns()
    return new Set(reply.outcomes.map(({ kind }) => kind))
  }

  async function readsOf(ids: readonly string[]): Promise<number> {
    const before = reads
    expect(await kinds(ids)).to.deep.equal(new Set(['updated']))
    return reads - before
  }

  it('of a new shard are not looked up', async () => {
    await kinds(['first'])
    expect(await readsOf(names('bulk', 500))).to.be.below(50)
  })

  it('of a shard that was opened again are looked up until its ids are read, and not taken for missing', async () => {
    await kinds(names('stored', stored))
    await host.close()
    await open()
    expect(await readsOf(['a'])).to.be.above(0)
    for (let round = 0; round < 20; round++) {
      expect(await kinds(names('stored', stored))).to.deep.equal(new Set(['conflict']))
      expect(await kinds(names(`round-${round}`, 40))).to.deep.equal(new Set(['updated']))
    }
    expect(await readsOf(names('late', 30))).to.be.below(10)
    expect(await kinds(names('stored', stored))).to.deep.equal(new Set(['conflict']))
    expect(await kinds(names('round-3', 40))).to.deep.equal(new Set(['conflict']))
  })

  it('are looked up on while the ids cannot be read', async () => {
    await kinds(names('stored', stored))
    await host.close()
    await open()
    let failures = 3
    disk.setFaults({ failRead: () => { reads++; return reads % 7 === 0 && failures-- > 0 ? 'io' : undefined } })
    for (let round = 0; round < 40; round++) await kinds(names(`round-${round}`, 40)).catch(() => {})
    expect(await kinds(names('stored', stored))).to.deep.equal(new Set(['conflict']))
  })
})
