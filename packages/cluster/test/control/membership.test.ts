import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import type { ControlPeer, JoinReply } from '@sectional/core'
import { defaultRaftDriverOptions } from '../../src/consensus/raft-driver.ts'
import { activeReplicas } from '../../src/control/cluster-state.ts'
import { addressOf, ControlWorld } from './control-world.ts'

const options = { q: 4, n: 3, partitioned: false }

const never = (): Promise<never> => new Promise(() => {})
/** A node that has just started and answers no call yet. */
const deafPeer: ControlPeer = {
  sendRaft: () => {}, status: never, join: never, propose: never, ask: never, designChanged: never,
}

describe('membership', () => {
  let world: ControlWorld
  afterEach(async () => {
    await world.stopAll()
    expect(world.fatal).to.deep.equal([])
  })

  it('lets the sixth node learn and takes it as a voter when a voter goes', async () => {
    world = new ControlWorld()
    const names = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6']
    await world.form(names)
    await world.until(() => world.plane('n1').votingConfiguration()?.voters.length === 5, 'five vote')
    const { learners = [] } = world.plane('n1').votingConfiguration() ?? {}
    expect(learners.length).to.equal(1)
    const learner = learners[0] ?? ''
    await world.during(world.plane(learner).createDatabase('db', options))
    const leader = await world.leader()
    const leaving = world.plane('n1').votingConfiguration()?.voters.find(name => name !== leader) ?? ''
    await world.during(world.plane(leader).removeNode(leaving))
    await world.until(
      () => world.plane(leader).votingConfiguration()?.voters.includes(learner) === true, 'the learner votes',
    )
    expect(world.plane(leader).votingConfiguration()?.voters).not.to.include(leaving)
  })

  it('gives databases the replicas that they lacked when nodes come, filling at first', async () => {
    world = new ControlWorld()
    await world.form(['n1', 'n2'])
    await world.during(world.plane('n1').createDatabase('db', options))
    expect(world.plane('n1')
      .state()?.databases.get('db')?.shards.every(shard => shard.replicas.length === 2)).to.equal(true)
    await world.start('n3')
    await world.until(
      () => world.plane('n3').state()?.databases.get('db')?.shards.every(shard => shard.replicas.length === 3) === true,
      'three replicas each',
    )
    const record = world.plane('n3').state()?.databases.get('db')
    for (const shard of record?.shards ?? []) {
      expect(shard.replicas.filter(replica => replica.filling)).to.deep.equal([{ node: 'n3', filling: true }])
      await world.during(world.plane('n3').replicaFilled(record?.incarnation ?? '', shard.range, 'n3'))
    }
    expect(world.plane('n1')
      .state()?.databases.get('db')?.shards.every(shard => activeReplicas(shard).length === 3)).to.equal(true)
  })

  it('brings a node that was long away up to date by a snapshot', async () => {
    world = new ControlWorld({
      options: { raft: { ...defaultRaftDriverOptions, snapshotEntries: 20, trailingEntries: 5 } },
    })
    await world.form()
    await world.stop('n3')
    for (let at = 0; at < 60; at += 1) {
      await world.during(world.plane('n1').createDatabase(`db${at}`, { ...options, q: 1 }))
    }
    await world.start('n3')
    await world.until(() => world.plane('n3').state()?.databases.size === 60, 'n3 knows all databases')
    expect(world.said('n3', 'took over a snapshot')).to.equal(true)
    await world.crash('n3')
    await world.start('n3')
    expect(world.plane('n3').state()?.databases.size).to.equal(60)
    await world.start('n4')
    await world.until(
      () => world.running().includes('n4') && world.plane('n4').state()?.databases.size === 60,
      'n4 knows all databases',
    )
  })

  it('moves the replicas of a removed node to others', async () => {
    world = new ControlWorld()
    await world.form(['n1', 'n2', 'n3', 'n4'])
    await world.during(world.plane('n1').createDatabase('db', { q: 8, n: 3, partitioned: false }))
    await world.stop('n4')
    await world.during(world.plane('n1').removeNode('n4'))
    for (const shard of world.plane('n2').state()?.databases.get('db')?.shards ?? []) {
      expect(shard.replicas.map(replica => replica.node).sort()).to.deep.equal(['n1', 'n2', 'n3'])
      expect(activeReplicas(shard).length).to.be.greaterThan(1)
    }
    const error = await world.during(world.plane('n1').removeNode('n4')).then(() => null, (reason: unknown) => reason)
    expect((error as ApiError).status).to.equal(404)
  })

  it('informs a removed node of its removal, and does not admit it again with its old disk', async () => {
    world = new ControlWorld()
    await world.form(['n1', 'n2', 'n3', 'n4'])
    await world.stop('n4')
    await world.during(world.plane('n1').removeNode('n4'))
    await world.start('n4', { seeds: ['n1', 'n2', 'n3'].map(addressOf) })
    await world.until(
      () => /was removed from this cluster/.test(world.plane('n4').unavailableReason() ?? ''),
      'n4 knows that it was removed',
    )
    expect(await world.leader(['n1', 'n2', 'n3'])).to.be.a('string')
    await world.stop('n4')
    world.wipe('n4')
    await world.start('n4')
    await world.serving(['n1', 'n2', 'n3', 'n4'])
  })

  it('removes the leader too', async () => {
    world = new ControlWorld()
    await world.form()
    const leader = await world.leader()
    const others = world.running().filter(name => name !== leader)
    await world.during(world.plane(others[0] ?? '').removeNode(leader))
    await world.until(
      () => world.plane(others[0] ?? '').votingConfiguration()?.voters.length === 2, 'two voters are left',
    )
    await world.leader(others)
    await world.during(world.plane(others[1] ?? '').createDatabase('db', options))
    expect(world.plane(leader).unavailableReason()).to.match(/not a member/)
  })

  it('takes a member with an empty disk back as a new one, whose replicas are filled again', async () => {
    world = new ControlWorld()
    await world.form()
    await world.during(world.plane('n1').createDatabase('db', options))
    await world.stop('n2')
    world.wipe('n2')
    await world.leader(['n1', 'n3'])
    await world.start('n2')
    await world.serving(['n1', 'n2', 'n3'])
    await world.voting(['n1', 'n2', 'n3'])
    for (const shard of world.plane('n2').state()?.databases.get('db')?.shards ?? []) {
      expect(shard.replicas.find(replica => replica.node === 'n2')?.filling).to.equal(true)
      expect(activeReplicas(shard).map(replica => replica.node).sort()).to.deep.equal(['n1', 'n3'])
    }
  })

  const joinAsGuest = async (name: string, address: string, through: string): Promise<JoinReply> => {
    const guest = world.hub.attach({ node: name, address, clusterId: null })
    await guest.start({ control: () => deafPeer, replica: () => undefined, indexes: () => undefined })
    guest.setPeers([addressOf(through)])
    await world.until(() => guest.connected().some(peer => peer.node === through), 'the guest has a link')
    const reply = await world.during(
      guest.control(through).join({ node: name, address, zone: null }, { timeoutMs: 5000 }),
    )
    await guest.stop()
    return reply
  }

  it('refuses a second node under the name of a member, connected or not', async () => {
    world = new ControlWorld()
    await world.form()
    const reply = await joinAsGuest('n2', 'elsewhere.test:7000', 'n1')
    expect(reply.kind === 'refused' && reply.reason).to.match(/n2 is a member at n2.test:7000/)
    await world.stop('n2')
    await world.leader()
    expect((await joinAsGuest('n2', 'elsewhere.test:7000', 'n3')).kind).to.equal('refused')
    expect((await joinAsGuest('n4', addressOf('n2'), 'n3')).kind).to.equal('refused')
  })

  it('admits a node again that lost power between its admission and its disk', async () => {
    world = new ControlWorld()
    await world.form()
    expect((await joinAsGuest('n4', addressOf('n4'), 'n2')).kind).to.equal('admitted')
    await world.start('n4')
    await world.serving(['n1', 'n2', 'n3', 'n4'])
    await world.voting(['n1', 'n2', 'n3', 'n4'])
  })

  it('takes a member back whose membership ended by mistake: it has its disk', async () => {
    world = new ControlWorld()
    await world.form()
    await world.during(world.plane('n1').createDatabase('db', options))
    await world.stop('n2')
    await world.leader(['n1', 'n3'])
    expect((await joinAsGuest('n2', addressOf('n2'), await world.leader(['n1', 'n3']))).kind).to.equal('try-later')
    await world.until(() => world.plane('n1').votingConfiguration()?.voters.length === 2, 'the membership has ended')
    await world.start('n2')
    await world.serving(['n1', 'n2', 'n3'])
    await world.voting(['n1', 'n2', 'n3'])
    const record = world.plane('n2').state()?.databases.get('db')
    for (const shard of record?.shards ?? []) {
      await world.during(world.plane('n2').replicaFilled(record?.incarnation ?? '', shard.range, 'n2'))
    }
    expect(world.plane('n2')
      .state()?.databases.get('db')?.shards.every(shard => activeReplicas(shard).length === 3)).to.equal(true)
  })

  it('survives the loss of each disk, one after the other', async () => {
    world = new ControlWorld()
    await world.form()
    await world.during(world.plane('n1').createDatabase('db', options))
    for (const name of ['n1', 'n2', 'n3', 'n1']) {
      await world.stop(name)
      world.wipe(name)
      await world.start(name)
      await world.serving(['n1', 'n2', 'n3'])
      await world.voting(['n1', 'n2', 'n3'])
      const record = world.plane(name).state()?.databases.get('db')
      for (const shard of record?.shards ?? []) {
        await world.during(world.plane(name).replicaFilled(record?.incarnation ?? '', shard.range, name))
      }
    }
    expect(world.plane('n2')
      .state()?.databases.get('db')?.shards.every(shard => activeReplicas(shard).length === 3)).to.equal(true)
  })

  it('follows a member to its new address', async () => {
    world = new ControlWorld()
    await world.form()
    await world.stop('n3')
    await world.start('n3', { address: 'moved.test:7000', zone: 'east' })
    await world.until(
      () => world.plane('n1').state()?.nodes['n3']?.address === 'moved.test:7000', 'the address is known',
    )
    expect(world.plane('n1').state()?.nodes['n3']?.zone).to.equal('east')
  })

  it('keeps nodes of another cluster out', async () => {
    world = new ControlWorld()
    await world.form()
    await world.start('x1', { seeds: [] })
    await world.until(() => world.plane('x1').unavailableReason() === null, 'x1 has a cluster of its own')
    await world.stop('x1')
    await world.start('x1', { seeds: ['n1', 'n2', 'n3'].map(addressOf) })
    await world.advance(20_000)
    expect(world.plane('x1').state()?.clusterId).not.to.equal(world.plane('n1').state()?.clusterId)
    expect(world.plane('n1').state()?.nodes['x1']).to.equal(undefined)
    expect(world.plane('x1').connectedNodes()).to.deep.equal(['x1'])
  })

  it('ignores everything but status and join from a guest', async () => {
    world = new ControlWorld()
    await world.form()
    const guest = world.hub.attach({ node: 'guest', address: addressOf('guest'), clusterId: null })
    await guest.start({ control: () => deafPeer, replica: () => undefined, indexes: () => undefined })
    guest.setPeers([addressOf('n1')])
    await world.until(() => guest.connected().length === 1, 'the guest has a link')
    const peer = guest.control('n1')
    const context = { timeoutMs: 1000 }
    expect((await world.during(peer.status(context))).clusterId).to.be.a('string')
    for (const call of [() => peer.propose({ type: 'remove-node', node: 'n2', id: 'x' }, context), () =>
      peer.ask({ question: 'config', argument: null }, context)]) {
      expect(String(await world.during(call().catch((error: unknown) => error)))).to.match(/no member of this cluster/)
    }
    peer.sendRaft({
      type: 'vote-request', from: 'guest', to: 'n1', term: 1000, lastIndex: 1e6, lastTerm: 999, preVote: false,
    })
    await world.advance(3000)
    await world.leader()
    expect(Object.keys(world.plane('n1').state()?.nodes ?? {})).to.have.length(3)
    await guest.stop()
  })
})
