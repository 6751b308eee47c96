import type { PeerNetwork, RaftMessage } from '@sectional/core'
import { expect } from 'chai'
import { ConsensusRules } from '../../src/checkers/consensus-rules.ts'
import { LeaderRounds } from '../../src/checkers/leader-rounds.ts'
import { FaultyDisks } from '../../src/faults/faulty-disks.ts'
import { withRaftMessages } from '../../src/planted/planted-bug.ts'
import { Dice } from '../../src/world/dice.ts'
import { Failure } from '../../src/world/failure.ts'
import type { SimulatedNode } from '../../src/world/simulated-node.ts'
import { World } from '../../src/world/world.ts'

/** Runs a cluster whose nodes send altered messages. Returns what the checker finds; undefined: nothing. */
async function finding(alter: (message: RaftMessage) => RaftMessage): Promise<string | undefined> {
  const world = new World({ seed: 1, nodes: 3, plant: () => withRaftMessages(alter) })
  new ConsensusRules(world, { disksLost: 0 })
  try {
    await world.run(async () => {
      await world.start(1, 2, 3)
      await world.sleep(5000)
      await world.send(1, 'PUT', '/db')
      const leader = world.nodes.find(node => node.inside?.control.leader() === node.name)!
      world.crash(leader.number)
      await world.sleep(5000)
    }, 60_000)
  } catch (error) {
    if (error instanceof Failure && error.finder === 'consensus-rules') return error.message
    throw error
  }
  return undefined
}

describe('the rules of the metadata log', () => {
  it('find nothing in sound nodes', async () => {
    expect(await finding(message => message)).to.equal(undefined)
  })

  it('find an acknowledgement of entries that are not on the disk', async () => {
    const found = await finding(message =>
      message.type === 'append-reply' && message.success ? { ...message, matchIndex: message.matchIndex + 1 } : message)
    expect(found).to.match(/acknowledges .* the metadata log up to/)
  })

  it('find a vote that is not on the disk', async () => {
    const found = await finding(message =>
      message.type === 'vote-reply' && !message.preVote ? { ...message, to: 'node9@sim' } : message)
    expect(found).to.match(/votes for node9@sim/)
  })

  it('find a leader that commits what no majority has', async () => {
    const found = await finding(message =>
      message.type === 'append' ? { ...message, commit: message.commit + message.entries.length } : message)
    expect(found).to.match(/has committed entry|has counted copies/)
  })

  it('find a node that goes back to an earlier term', async () => {
    let sent = 0
    const found = await finding(message =>
      message.type === 'append' && ++sent > 20 ? { ...message, term: message.term - 1 } : message)
    expect(found).to.match(/after one of term|lead in term/)
  })

  it('find nothing when a leader with a failing disk sends its last messages after it has stepped down', async () => {
    const world = new World({ seed: 1, nodes: 3 })
    const networks = new Map<SimulatedNode, PeerNetwork>()
    world.observers.add({ network: (node, network) => { networks.set(node, network); return network } })
    new ConsensusRules(world, { disksLost: 0 })
    const disks = new FaultyDisks(world, new Dice(1), { min: 0, max: 0 })
    await world.run(async () => {
      await world.start(1, 2, 3)
      await world.sleep(5000)
      const leader = world.leader()!
      const follower = world.nodes.find(node => node !== leader)!
      disks.of(leader).failingWrites = 1
      void world.send(leader.number, 'PUT', '/db')
      await world.sleep(100)
      // Each read begins a round. The leader may answer none of them.
      const reads = Array.from({ length: 20 }, () =>
        networks.get(follower)!.control(leader.name).propose({ type: 'read-index' }, { timeoutMs: 1000 }))
      await Promise.allSettled(reads)
      await world.sleep(7000)
      expect(world.leader()).not.to.equal(leader)
      disks.of(leader).failingWrites = 0
      await world.sleep(2000)
    }, 60_000)
  })
})

describe('the rounds of a leader', () => {
  const voters = ['a', 'b', 'c']

  it('are too many when no majority answers', () => {
    const rounds = new LeaderRounds('a')
    const findings: unknown[] = []
    for (let round = 1; round <= 20; round++) findings.push(rounds.sending(round, [voters], round * 400))
    expect(findings.slice(0, 15)).to.deep.equal(new Array(15).fill(undefined))
    expect(findings[15]).to.equal(15)
  })

  it('are not too many when many are sent within a short time', () => {
    const rounds = new LeaderRounds('a')
    for (let round = 1; round <= 50; round++) expect(rounds.sending(round, [voters], round)).to.equal(undefined)
  })

  it('are not too many before ten heartbeats with slow ticks, also when other rounds are sent between them', () => {
    const rounds = new LeaderRounds('a')
    for (let round = 1; round <= 40; round++) expect(rounds.sending(round, [voters], round * 100)).to.equal(undefined)
  })

  it('are not too many while one of two others answers', () => {
    const rounds = new LeaderRounds('a')
    for (let round = 1; round <= 50; round++) {
      expect(rounds.sending(round, [voters], round * 200)).to.equal(undefined)
      rounds.answered('b', round, round * 200)
    }
  })

  it('confirm a read when a majority has answered a later one', () => {
    const rounds = new LeaderRounds('a')
    rounds.sending(1, [voters], 0)
    const mark = rounds.sent
    rounds.answered('b', 1, 0)
    expect(rounds.confirmedSince(mark, voters)).to.equal(false)
    rounds.sending(2, [voters], 0)
    rounds.answered('b', 2, 0)
    expect(rounds.confirmedSince(mark, voters)).to.equal(true)
  })
})
