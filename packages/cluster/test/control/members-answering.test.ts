import type { ControlPeer, PeerIdentity, PeerNetwork, PeerStatus } from '@sectional/core'
import { ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { membersAnswering } from '../../src/control/members-answering.ts'

const waitMs = 1000

describe('the nodes that answer', () => {
  let clock: ManualClock
  let listeners: Set<(peer: PeerIdentity, up: boolean) => void>
  let silent: string[]

  beforeEach(() => {
    clock = new ManualClock()
    listeners = new Set()
    silent = []
  })

  const network = {
    setPeers: () => {},
    onChange: (listener: (peer: PeerIdentity, up: boolean) => void) => {
      listeners.add(listener)
      return () => { listeners.delete(listener) }
    },
    control: (node: string) => ({
      status: async () => silent.includes(node) ? Promise.reject(new Error('no answer')) : statusOf(node),
    }) as unknown as ControlPeer,
  } satisfies Partial<PeerNetwork>

  function statusOf(node: string): PeerStatus {
    return { node, address: `${node}:1`, clusterId: 'c', fresh: false, leader: null }
  }

  /** Tells of a link, and lets the call over it end. */
  async function link(node: string, up = true): Promise<void> {
    for (const listener of listeners) listener({ node, address: `${node}:1`, clusterId: 'c' }, up)
    await clock.advance(0)
  }

  function ask(...addresses: string[]): { readonly found: () => readonly string[] | undefined } {
    let found: readonly string[] | undefined
    void membersAnswering({ network, clock, addresses, waitMs }).then(all => { found = all.map(({ node }) => node) })
    return { found: () => found }
  }

  afterEach(() => {
    expect(clock.pendingTimers).to.equal(0)
    expect(listeners.size).to.equal(0)
  })

  it('are known as soon as all have answered, each once', async () => {
    const { found } = ask('a:1', 'b:1')
    await link('a')
    await link('a')
    await link('b', false)
    expect(found()).to.equal(undefined)
    await link('b')
    expect(found()).to.deep.equal(['a', 'b'])
  })

  it('are those that answered in time', async () => {
    silent = ['b']
    const { found } = ask('a:1', 'b:1', 'c:1')
    await link('a')
    await link('b')
    await clock.advance(waitMs - 1)
    expect(found()).to.equal(undefined)
    await clock.advance(1)
    expect(found()).to.deep.equal(['a'])
  })

  it('are none, at once, without addresses', async () => {
    const { found } = ask()
    await clock.advance(0)
    expect(found()).to.deep.equal([])
  })
})
