import { createHash } from 'node:crypto'
import { shardKey, shardRanges } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import { expect } from 'chai'
import type { HostedShard } from '../../src/anti-entropy/hosted-shards.ts'
import { ReplicaRepair } from '../../src/anti-entropy/replica-repair.ts'
import type { LocalReplicas } from '../../src/replicas/local-replicas.ts'
import { plainCall } from '../replica-world.ts'

const retryMs = 1000
const id = { incarnation: 'one', range: shardRanges(1)[0]! }
const content = Buffer.from('content of an attachment')
const hash = createHash('sha256').update(content).digest('hex')

async function* chunks(): AsyncGenerator<Uint8Array> { yield content }

describe('the repair of damage', () => {
  let clock: ManualClock
  let abort: AbortController
  let repair: ReplicaRepair
  let replicas: Map<string, MemoryShardReplica>
  let connected: Set<string>
  let filling: boolean
  let rebuilt: number
  let begun: number
  /** Answers reports of damaged replicas. */
  let report: () => Promise<boolean>

  beforeEach(() => {
    clock = new ManualClock()
    abort = new AbortController()
    replicas = new Map(['a', 'b', 'c', 'd'].map(node => [node, new MemoryShardReplica({ history: node })]))
    connected = new Set(['c', 'd'])
    filling = false
    rebuilt = 0
    begun = 0
    report = async () => true
    repair = new ReplicaRepair({
      clock, log: new MemoryLog(), retryMs, callTimeoutMs: 1000, signal: abort.signal,
      local: {
        replica: () => replicas.get('a'), rebuild: async () => { rebuilt++ },
      } satisfies Partial<LocalReplicas> as unknown as LocalReplicas,
      replicas: {
        replica: node => replicas.get(node)!, isConnected: node => connected.has(node), isCatchingUp: () => false,
      },
      current: key => ({ key, id, peers: ['b', 'c', 'd'], filling }) as unknown as HostedShard,
      reportDamaged: () => report(), onRebuilt: () => { begun++ },
    })
  })

  afterEach(async () => {
    abort.abort()
    await repair.stop()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('of the content of an attachment copies it from a replica that has it', async () => {
    await replicas.get('b')!.blobs.writeBlob(chunks(), plainCall)
    const repaired = async (): Promise<boolean> => {
      repair.damagedBlob(hash, [id])
      await clock.advance(0)
      return (await replicas.get('a')!.blobs.hasBlobs([hash], plainCall))[0]!
    }
    expect(await repaired(), 'the only node that has it is away').to.equal(false)
    await replicas.get('d')!.blobs.writeBlob(chunks(), plainCall)
    expect(await repaired()).to.equal(true)
  })

  it('of a replica is tried again until the cluster has marked it as filling, and rebuilds it once', async () => {
    report = async () => { throw new Error('no leader') }
    repair.damagedReplica(id)
    await clock.advance(0)
    filling = true
    report = async () => false
    await clock.advance(retryMs)
    filling = false
    report = async () => true
    await clock.advance(retryMs)
    expect([rebuilt, repair.isDamaged(shardKey(id))]).to.deep.equal([0, true])
    filling = true
    await clock.advance(retryMs)
    expect([rebuilt, begun, repair.isDamaged(shardKey(id))]).to.deep.equal([1, 1, false])
    await clock.advance(5 * retryMs)
    expect([rebuilt, begun]).to.deep.equal([1, 1])
  })

  it('ends when the replica is no longer on this node', async () => {
    replicas.delete('a')
    repair.damagedReplica(id)
    await clock.advance(retryMs)
    expect(repair.isDamaged(shardKey(id))).to.equal(false)
  })
})
