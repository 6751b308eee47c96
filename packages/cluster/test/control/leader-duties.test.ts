import { expect } from 'chai'
import type { PeerIdentity, PeerNetwork, VotingConfiguration } from '@sectional/core'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import type { RaftDriver } from '../../src/consensus/raft-driver.ts'
import type { ClusterState } from '../../src/control/cluster-state.ts'
import { LeaderDuties } from '../../src/control/leader-duties.ts'
import { initialState } from '../../src/control/state-machine.ts'
import { addressOf } from './control-world.ts'

describe('the leader', () => {
  const clock = new ManualClock()
  const context = { timeoutMs: 1000 }
  const nodes = { n1: { name: 'n1', address: addressOf('n1'), zone: null } }
  let configuration: VotingConfiguration
  let members: ClusterState['nodes']
  let linked: PeerIdentity[]
  let lost: readonly string[]
  const proposed: string[] = []

  beforeEach(() => {
    members = nodes
    linked = []
    lost = []
    proposed.length = 0
  })

  const duties = (): LeaderDuties => new LeaderDuties({
    node: 'n1', address: addressOf('n1'), zone: null, start: { ids: ['s'], confirmed: 0 }, clock, log: new MemoryLog(),
    network: { connected: () => linked } as unknown as PeerNetwork,
    raft: { get configuration() { return configuration }, leads: true, matchOf: () => 7 } as unknown as RaftDriver,
    state: () => ({ ...initialState('c'), index: 9, nodes: members, lost }),
    newCommandId: () => 'id',
    proposeHere: async ({ type }) => {
      proposed.push(type)
      return { kind: 'not-leader', leader: null }
    },
  })

  it('lets a removed node in again only when its old vote is out: it has forgotten how it voted', async () => {
    const returning = {
      type: 'admit-node' as const, id: 'x', node: 'n2', address: addressOf('n2'), zone: null, fresh: true,
    }
    configuration = { voters: ['n1', 'n2'], learners: [] }
    expect(await duties().checkAdmission(returning, context)).to.deep.equal({ kind: 'later' })
    configuration = { voters: ['n1'], learners: ['n2'] }
    expect(await duties().checkAdmission(returning, context)).to.deep.equal({ kind: 'later' })
    configuration = { voters: ['n1'], learners: [] }
    expect(await duties().checkAdmission(returning, context)).to.equal(null)
    expect(proposed).to.deep.equal([])
  })

  it('takes the disk of a member for lost when a link shows that it is empty, not when a request says so', async () => {
    const request = {
      type: 'admit-node' as const, id: 'x', node: 'n2', address: addressOf('n2'), zone: null, fresh: true,
    }
    const asked = async (clusterId: string | null | undefined): Promise<unknown> => {
      linked = clusterId === undefined ? [] : [{ node: 'n2', address: addressOf('n2'), clusterId }]
      return { answer: (await duties().checkAdmission(request, context))?.kind, proposed: proposed.splice(0) }
    }
    members = { ...nodes, n2: { name: 'n2', address: addressOf('n2'), zone: null } }
    configuration = { voters: ['n1', 'n2'], learners: [] }
    expect(await asked(undefined)).to.deep.equal({ answer: 'later', proposed: [] })
    expect(await asked('c')).to.deep.equal({ answer: 'refused', proposed: [] })
    expect(await asked(null)).to.deep.equal({ answer: 'later', proposed: ['forget-node'] })
  })

  it('lets a member that lost its disk in again only when its old vote is out, whatever links it has', async () => {
    const request = {
      type: 'admit-node' as const, id: 'x', node: 'n2', address: addressOf('n2'), zone: null, fresh: true,
    }
    members = { ...nodes, n2: { name: 'n2', address: addressOf('n2'), zone: null } }
    lost = ['n2']
    for (const link of [[], [{ node: 'n2', address: addressOf('n2'), clusterId: null }]]) {
      linked = link
      configuration = { voters: ['n1', 'n2'], learners: [] }
      expect(await duties().checkAdmission(request, context)).to.deep.equal({ kind: 'later' })
      configuration = { voters: ['n1'], learners: ['n2'] }
      expect(await duties().checkAdmission(request, context)).to.deep.equal({ kind: 'later' })
      configuration = { voters: ['n1'], learners: [] }
      expect(await duties().checkAdmission(request, context)).to.equal(null)
    }
    expect(proposed, 'its replicas are marked as filling already').to.deep.equal([])
  })

  it('has a member admitted again when its process has a link although a later start of it is recorded', async () => {
    const request = {
      type: 'admit-node' as const, id: 'x', node: 'n2', address: addressOf('n2'), zone: null, fresh: false,
      start: { ids: ['old'], confirmed: 0 },
    }
    const start = { id: 'new', former: ['old'], index: 1 }
    members = { ...nodes, n2: { name: 'n2', address: addressOf('n2'), zone: null, start } }
    const asked = async (...links: readonly Partial<PeerIdentity>[]): Promise<unknown> => {
      linked = links.map(link => ({ node: 'n2', address: addressOf('n2'), clusterId: 'c', ...link }))
      return { answer: await duties().checkAdmission(request, context), proposed: proposed.splice(0) }
    }
    const later = { kind: 'later' }
    expect(await asked(), 'a late request').to.deep.equal({ answer: later, proposed: [] })
    const others = [{ start: { ids: ['new'], confirmed: 1 } }, { node: 'n3', start: request.start },
      { clusterId: null, start: request.start }]
    expect(await asked(...others)).to.deep.equal({ answer: later, proposed: [] })
    expect(await asked({ start: request.start })).to.deep.equal({ answer: later, proposed: ['forget-node'] })
  })
})
