import type { CallContext, JoinReply, PeerIdentity, RaftMessage } from '@sectional/core'
import { expect } from 'chai'
import { controlPeer } from '../../src/control/control-peer.ts'
import type { ControlPeerHost } from '../../src/control/control-peer.ts'

const call: CallContext = { timeoutMs: 1000 }

describe('the calls of a peer', () => {
  let own: string | null
  /** The calls that were let through. */
  let passed: string[]

  beforeEach(() => {
    own = 'c'
    passed = []
  })

  function peer(from: Partial<PeerIdentity>) {
    const host: ControlPeerHost = {
      clusterId: () => own,
      status: () => ({ node: 'a', address: 'a:1', clusterId: own, fresh: false, leader: null }),
      step: () => { passed.push('step') },
      propose: async () => { passed.push('propose'); return { kind: 'not-leader', leader: null } },
      admit: async () => { passed.push('admit'); return { kind: 'try-later', leader: 'a' } },
      answer: async () => { passed.push('answer') },
      designChanged: () => { passed.push('designChanged') },
    }
    return controlPeer(host, 'a', { node: 'b', address: 'b:1', clusterId: 'c', ...from })
  }

  async function allOf(from: Partial<PeerIdentity>): Promise<readonly string[]> {
    const to = peer(from)
    to.sendRaft({ type: 'append-reply', from: 'b', to: 'a' } as RaftMessage)
    const calls = [
      () => to.propose({}, call), () => to.ask({ question: 'x' as never, argument: null }, call),
      () => to.designChanged('one', call),
    ]
    for (const act of calls) await act().catch(() => {})
    return passed.splice(0)
  }

  it('are for members of the cluster, apart from the status and the request to join', async () => {
    expect(await allOf({})).to.deep.equal(['step', 'propose', 'answer', 'designChanged'])
    for (const clusterId of [null, 'other']) expect(await allOf({ clusterId }), String(clusterId)).to.deep.equal([])
    expect((await peer({ clusterId: null }).status(call)).node).to.equal('a')
    own = null
    for (const clusterId of [null, 'c']) expect(await allOf({ clusterId })).to.deep.equal([])
    expect(await peer({}).propose({}, call)).to.deep.equal({ kind: 'not-leader', leader: null })
  })

  it('reach the consensus core only in the name of their sender and for this node', () => {
    for (const message of [{ from: 'c', to: 'a' }, { from: 'b', to: 'c' }]) {
      peer({}).sendRaft({ type: 'append-reply', ...message } as RaftMessage)
    }
    expect(passed).to.deep.equal([])
  })

  it('to join are refused in another name, with a bad address and from another cluster', async () => {
    const join = async (from: Partial<PeerIdentity>, node = 'b', address = 'b:1'): Promise<JoinReply['kind']> =>
      (await peer(from).join({ node, address, zone: null }, call)).kind
    expect(await join({}, 'c')).to.equal('refused')
    expect(await join({}, 'b', 'b')).to.equal('refused')
    expect(await join({ clusterId: 'other' })).to.equal('refused')
    expect(passed).to.deep.equal([])
    for (const clusterId of [null, 'c']) expect(await join({ clusterId })).to.equal('try-later')
    expect(passed).to.deep.equal(['admit', 'admit'])
    own = null
    expect(await peer({}).join({ node: 'b', address: 'b:1', zone: null }, call)).to.deep.equal(
      { kind: 'try-later', leader: null })
    expect(passed).to.deep.equal(['admit', 'admit'])
  })
})
