import { expect } from 'chai'
import fc from 'fast-check'
import type { VotingConfiguration } from '@sectional/core'
import {
  changeConfiguration, decodeConfiguration, encodeConfiguration, maxVoters, nextConfigurationChange,
} from '../../src/consensus/configuration.ts'
import { RaftCore } from '../../src/consensus/raft-core.ts'
import { RaftLog } from '../../src/consensus/raft-log.ts'
import { defaultRaftOptions } from '../../src/consensus/raft-work.ts'

const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const configurations = fc.tuple(fc.subarray(names, { minLength: 1, maxLength: maxVoters }), fc.subarray(names))
  .map(([voters, learners]) => ({ voters, learners: learners.filter(name => !voters.includes(name)) }))

describe('changes of the voting configuration', () => {
  it('lead from any configuration to the wanted members, one step at a time, the leader last', () => {
    fc.assert(fc.property(configurations, fc.subarray(names, { minLength: 1 }), fc.nat(), (start, members, pick) => {
      let current: VotingConfiguration = start
      const leader = start.voters[pick % start.voters.length] ?? ''
      for (let steps = 0; steps < 30; steps += 1) {
        const change = nextConfigurationChange(current, { members, leader, caughtUp: () => true })
        if (!change) break
        const next = changeConfiguration(current, change)
        expect(Math.abs(next.voters.length - current.voters.length)).to.be.at.most(1)
        if (change.node === leader && change.kind === 'remove') {
          const present = [...next.voters, ...next.learners]
          expect(members.every(name => present.includes(name)) && present.every(name =>
            members.includes(name)), 'the leader left before the others had come and gone').to.equal(true)
        }
        current = next
      }
      expect([...current.voters, ...current.learners].sort()).to.deep.equal([...members].sort())
      expect(current.voters.length).to.equal(Math.min(maxVoters, members.length))
    }))
  })

  it('wait for learners to catch up, and never remove the last voter', () => {
    const learning = { voters: ['a'], learners: ['b'] }
    const behind = { members: ['a', 'b'], leader: 'a', caughtUp: () => false }
    expect(nextConfigurationChange(learning, behind)).to.equal(null)
    const left = { members: [], leader: 'a', caughtUp: () => true }
    expect(nextConfigurationChange({ voters: ['a'], learners: [] }, left)).to.equal(null)
    expect(() =>
      changeConfiguration({ voters: ['a'], learners: [] }, { kind: 'remove', node: 'a' })).to.throw(/last voter/)
  })

  it('are decoded as they were encoded, and other bytes are refused', () => {
    fc.assert(fc.property(configurations, configuration => {
      expect(decodeConfiguration(encodeConfiguration(configuration))).to.deep.equal(configuration)
    }))
    for (const text of ['null', '{}', '[]', '{"voters":[1],"learners":[]}']) {
      expect(() => decodeConfiguration(Buffer.from(text))).to.throw()
    }
  })
})

describe('the voting configuration of a log', () => {
  it('is that of an entry from the entry on, also for a snapshot that ends with it', () => {
    const [before, after] = [{ voters: ['a'], learners: ['b'] }, { voters: ['a', 'b'], learners: [] }]
    const none = new Uint8Array(0)
    const core = new RaftCore({
      id: 'a', hardState: { term: 1, vote: 'a', commit: 3 },
      snapshot: { index: 0, term: 0, configuration: before, state: none, checksum: 0 },
      log: new RaftLog(0, 0, [
        { index: 1, term: 1, kind: 'noop', payload: none },
        { index: 2, term: 1, kind: 'configuration', payload: encodeConfiguration(after) },
        { index: 3, term: 1, kind: 'noop', payload: none },
      ]),
      options: defaultRaftOptions, random: () => 0,
    })
    expect([1, 2, 3].map(index => core.configurationAt(index))).to.deep.equal([before, after, after])
  })
})
