import { ReplicaError } from '@sectional/core'
import { expect } from 'chai'
import type { Peer } from '../../src/replicas/replica-access.ts'
import { unlessSilent } from '../../src/shard-calls/silence-watch.ts'
import { IndexWorld } from '../views/index-world.ts'

describe('a peer that owes an answer', () => {
  let world: IndexWorld
  let peer: Peer
  let scope: ReturnType<IndexWorld['viewScope']>

  beforeEach(() => {
    world = new IndexWorld()
    scope = world.viewScope('a')
    peer = scope.access.peers(scope.access.placeOf(world.db, 'x')).find(({ node }) => node === 'b')!
  })

  /** Returns the code of the failure of a call that is never answered itself, and the time of the failure. */
  async function failure(): Promise<readonly [code: unknown, ms: number]> {
    const call = unlessSilent(scope, peer, new Promise<never>(() => {}))
    const code = await world.during(call.catch((error: unknown) => error instanceof ReplicaError && error.code))
    return [code, world.clock.monotonic()]
  }

  it('is given up when it does not answer the first probe', async () => {
    world.faults.set('b', { kind: 'hang' })
    const [code, ms] = await failure()
    expect(code).to.equal('timeout')
    expect(ms).to.be.within(2 * scope.options.silenceProbeMs, 2 * scope.options.silenceProbeMs + 20)
  })

  it('is given up when it answers some probes and hangs afterwards', async () => {
    const hangsAt = 10 * scope.options.silenceProbeMs
    world.clock.setTimer(hangsAt, () => { world.faults.set('b', { kind: 'hang' }) })
    const [code, ms] = await failure()
    expect(code).to.equal('timeout')
    expect(ms).to.be.within(hangsAt + scope.options.silenceProbeMs, hangsAt + 3 * scope.options.silenceProbeMs + 20)
  })

  it('is not given up while it answers probes', async () => {
    const answer = Promise.withResolvers<string>()
    world.clock.setTimer(20 * scope.options.silenceProbeMs, () => answer.resolve('done'))
    expect(await world.during(unlessSilent(scope, peer, answer.promise))).to.equal('done')
    await world.during(scope.background.idle())
    expect(world.clock.pendingTimers).to.equal(0)
  })
})
