import { expect } from 'chai'
import { ManualClock } from '@sectional/runtime'
import type { Log, Timer } from '@sectional/runtime'
import { CatchUp } from '../../src/anti-entropy/catch-up.ts'
import type { HostedShard } from '../../src/anti-entropy/hosted-shards.ts'
import type { LocalReplicas } from '../../src/replicas/local-replicas.ts'
import type { SyncJob, SyncQueue } from '../../src/anti-entropy/sync-queue.ts'

const log: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
const tickMs = 2000
const catchUpMaxMs = 300_000

describe('replicas of a node that misses writes', () => {
  let clock: ManualClock
  let catchUp: CatchUp
  let links: Set<string>
  let shards: Map<string, HostedShard>
  let declining: Set<string>
  /** The result of a pull; absent: it succeeds. */
  let outcome: (job: SyncJob) => Promise<boolean>

  /** Informs the cluster that a replica is filled. */
  let report: () => Promise<void>

  beforeEach(() => {
    report = async () => {}
    clock = new ManualClock()
    links = new Set(['b', 'c'])
    shards = new Map()
    declining = new Set()
    outcome = async () => true
    let timer: Timer | undefined
    catchUp = new CatchUp({
      clock, log, options: { catchUpMaxMs },
      local: {
        setCatchingUp: ({ incarnation }, on) => {
          if (on) declining.add(incarnation)
          else declining.delete(incarnation)
        },
        isUncompared: () => false, compared: () => {},
      } satisfies Partial<LocalReplicas> as unknown as LocalReplicas,
      queue: { add: (job: SyncJob) => outcome(job) } as unknown as SyncQueue,
      isConnected: node => links.has(node), current: key => shards.get(key), isDamaged: () => false,
      reportFilled: () => report(),
      tryAgain: () => {
        timer ??= clock.setTimer(tickMs, () => { timer = undefined; catchUp.tick() })
      },
    })
  })

  const hosted = (key: string, peers: readonly string[]): HostedShard => {
    const shard = {
      key, id: { incarnation: key, range: { begin: 0, end: 1 } }, db: { name: key }, record: {}, peers,
      activePeers: peers, filling: false,
    } as unknown as HostedShard
    shards.set(key, shard)
    return shard
  }

  /** Lets a replica miss a write each second. */
  const missFor = async (seconds: number, shard: HostedShard): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      catchUp.missed(shard)
      await clock.advance(1000)
    }
  }

  it('catch up while another one misses writes all the time and a third one has no peers', async () => {
    catchUp.started(hosted('lonely', ['x', 'y']))
    const once = hosted('once', ['b', 'c'])
    catchUp.missed(once)
    await missFor(10, hosted('always', ['b', 'c']))
    expect(['lonely', 'once'].filter(key => declining.has(key))).to.deep.equal(['lonely'])
    await missFor(catchUpMaxMs / 1000, shards.get('always')!)
    expect(declining.has('lonely'), 'only the time limit helps it').to.equal(false)
  })

  it('catch up while a pull of another one takes long', async () => {
    outcome = ({ shard: { key } }) => key === 'slow' ? new Promise(() => {}) : Promise.resolve(true)
    catchUp.missed(hosted('slow', ['b', 'c']))
    catchUp.missed(hosted('once', ['b', 'c']))
    await missFor(20, hosted('always', ['b', 'c']))
    expect(['slow', 'once'].filter(key => declining.has(key))).to.deep.equal(['slow'])
  })

  it('catch up by pulls that begin after the missed write, and not by one that runs', async () => {
    const pulls: PromiseWithResolvers<boolean>[] = []
    outcome = () => {
      const pull = Promise.withResolvers<boolean>()
      pulls.push(pull)
      return pull.promise
    }
    const shard = hosted('late', ['b'])
    catchUp.started(shard)
    catchUp.missed(shard)
    pulls[0]!.resolve(true)
    await clock.advance(0)
    expect(declining.has('late'), 'the pull may have begun before the write').to.equal(true)
    await clock.advance(tickMs)
    expect(pulls).to.have.length(2)
    pulls[1]!.resolve(true)
    await clock.advance(0)
    expect(declining.has('late')).to.equal(false)
  })

  it('try one after the other while the disk refuses writes, and do not give up before they could try', async () => {
    const begun: string[] = []
    outcome = async ({ shard: { key } }) => { begun.push(key); return false }
    const many = Array.from({ length: 20 }, (_, at) => hosted(`s${at}`, ['b']))
    for (const shard of many) catchUp.missed(shard)
    await missFor(400, many[0]!)
    expect(begun.length).to.be.most(200)
    expect(new Set(begun).size).to.equal(many.length)
    expect(declining.size).to.equal(many.length)
    outcome = async () => true
    await clock.advance(2 * tickMs)
    expect(declining.size).to.equal(0)
  })

  it('are reported as filled again when the cluster could not be informed', async () => {
    let reports = 0
    report = async () => {
      reports++
      throw new Error('no leader')
    }
    const shard = hosted('filling', ['b'])
    shards.set('filling', { ...shard, filling: true })
    catchUp.started(shards.get('filling')!)
    await clock.advance(3 * tickMs)
    expect(reports).to.be.above(1)
    report = async () => { reports++ }
    await clock.advance(tickMs)
    const informed = reports
    await clock.advance(10 * tickMs)
    expect(reports).to.equal(informed)
  })
})
