import assert from 'node:assert/strict'
import fc from 'fast-check'
import { SeededRandom } from '@sectional/runtime'
import { DialingHandshake, ListeningHandshake } from '../../src/link/handshake.ts'
import type {
  Established, HandshakeMachine, HandshakeOptions, HandshakeStep, LinkIdentity,
} from '../../src/link/handshake.ts'
import { handshakeType, welcomeCoreType } from '../../src/schema/schema.ts'
import { checkClusterSecret } from '@sectional/rpc'
import { secret } from '../test-node.ts'

const random = new SeededRandom(1)

function identity(node: string, clusterId: string | null = 'c1'): LinkIdentity {
  return { node, address: `${node}:1`, clusterId, instance: Buffer.from(random.bytes(16)).toString('hex') }
}

function options(node: string, more: Partial<HandshakeOptions> = {}): HandshakeOptions {
  return { identity: identity(node), secret, nonce: random.bytes(32), ...more }
}

type Tamper = (frame: Uint8Array, index: number) => Uint8Array

/** Passes frames between the two machines until both have decided. */
function shake(
  dialer: DialingHandshake, listener: HandshakeMachine, tamper: Tamper = frame => frame,
): readonly [HandshakeStep, HandshakeStep | undefined] {
  let toListener: Uint8Array | undefined = dialer.hello
  let ofListener: HandshakeStep | undefined
  let ofDialer: HandshakeStep | undefined
  for (let index = 0; toListener; index += 2) {
    ofListener = listener.receive(tamper(toListener, index))
    if (!ofListener.send) break
    ofDialer = dialer.receive(tamper(ofListener.send, index + 1))
    toListener = ofDialer.kind === 'continue' ? ofDialer.send : undefined
  }
  return [ofDialer ?? { kind: 'continue', send: dialer.hello }, ofListener]
}

function refusalOf(step: HandshakeStep | undefined): string {
  return step?.kind === 'refused' ? step.refusal.kind : step?.kind ?? 'nothing'
}

function established(step: HandshakeStep | undefined): Established {
  assert(step?.kind === 'established')
  return step.result
}

describe('the handshake', () => {
  it('gives each side the identity of the other, and each direction a key of its own', () => {
    const a = options('a')
    const b = options('b')
    const [ofDialer, ofListener] = shake(new DialingHandshake(a), new ListeningHandshake(b))
    assert.deepEqual(established(ofDialer).peer, b.identity)
    assert.deepEqual(established(ofListener).peer, a.identity)
    assert.deepEqual(established(ofDialer).sendKey, established(ofListener).receiveKey)
    assert.deepEqual(established(ofDialer).receiveKey, established(ofListener).sendKey)
    assert.notDeepEqual(established(ofDialer).sendKey, established(ofDialer).receiveKey)
  })

  it('gives every connection different keys', () => {
    const keys = [1, 2].map(() =>
      established(shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b')))[0]).sendKey)
    assert.notDeepEqual(keys[0], keys[1])
  })

  it('refuses another secret on the dialing side, and on the listening side when the dialer continues', () => {
    const other = 'another secret that is as long as the first'
    const [ofDialer] = shake(
      new DialingHandshake(options('a', { secret: other })), new ListeningHandshake(options('b')),
    )
    assert.equal(refusalOf(ofDialer), 'secret')
    const listener = new ListeningHandshake(options('b'))
    listener.receive(new DialingHandshake(options('a', { secret: other })).hello)
    assert.equal(refusalOf(listener.receive(handshakeType.encode({ proof: { proof: Buffer.alloc(32) } }))), 'secret')
  })

  it('gives the reason in one sentence without the secret', () => {
    const [step] = shake(
      new DialingHandshake(options('a', { secret: 'x'.repeat(32) })), new ListeningHandshake(options('b')),
    )
    assert(step.kind === 'refused' && step.send)
    const { refused } = handshakeType.decode(step.send)
    assert.match(refused.reason, /cluster secrets differ/)
    assert(!refused.reason.includes(secret) && !refused.reason.includes('x'.repeat(32)))
  })

  it('refuses a member of another cluster, and accepts a node without a cluster', () => {
    const member = options('b')
    const stranger = options('a', { identity: identity('a', 'c2') })
    assert.equal(refusalOf(shake(new DialingHandshake(stranger), new ListeningHandshake(member))[0]), 'cluster')
    assert.equal(refusalOf(shake(new DialingHandshake(stranger), new ListeningHandshake(member))[1]), 'cluster')
    const guest = options('a', { identity: identity('a', null) })
    const [ofDialer, ofListener] = shake(new DialingHandshake(guest), new ListeningHandshake(options('b')))
    assert.equal(established(ofListener).peer.clusterId, null)
    assert.equal(established(ofDialer).peer.clusterId, 'c1')
  })

  it('reports that another cluster has this node as a member, and only when the dialer has proven itself', () => {
    const claimed = (expected: string | undefined, tamper?: Tamper): boolean | string => {
      const dialer = new DialingHandshake(options('a', { identity: identity('a', 'c2'), expected }))
      const [, step] = shake(dialer, new ListeningHandshake(options('b')), tamper)
      assert(step?.kind === 'refused')
      return step.refusal.claimed ?? step.refusal.kind
    }
    assert.equal(claimed('b'), true)
    assert.equal(claimed('x'), false)
    assert.equal(claimed(undefined), false)
    const broken: Tamper = (frame, index) =>
      index === 2 ? handshakeType.encode({ proof: { proof: Buffer.alloc(32) } }) : frame
    assert.equal(claimed('b', broken), 'secret')
  })

  it('refuses a peer that the node does not accept, on either side, and tells it why', () => {
    const accept = () => ({ kind: 'busy', reason: 'too many links' }) as const
    const [byDialer] = shake(new DialingHandshake(options('a', { accept })), new ListeningHandshake(options('b')))
    assert(byDialer.kind === 'refused' && byDialer.send)
    assert.deepEqual(byDialer.refusal, accept())
    assert.equal(handshakeType.decode(byDialer.send).refused.reason, accept().reason)
    const steps = shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b', { accept })))
    assert.deepEqual(steps.map(refusalOf), ['by-peer', 'busy'])
  })

  it('refuses a nonce, an instance and ids of starts that no node sends', () => {
    const changed = (change: (hello: Record<string, any>) => void): string => {
      const { hello } = handshakeType.decode(new DialingHandshake(options('a')).hello)
      change(hello)
      return refusalOf(new ListeningHandshake(options('b')).receive(handshakeType.encode({ hello })))
    }
    assert.equal(changed(() => {}), 'continue')
    assert.equal(changed(hello => { hello.nonce = Buffer.alloc(31) }), 'garbage')
    assert.equal(changed(hello => { hello.identity.instance = Buffer.alloc(17) }), 'garbage')
    assert.equal(changed(hello => { hello.identity.startIds = Array(32).fill('0a') }), 'continue')
    assert.equal(changed(hello => { hello.identity.startIds = Array(33).fill('0a') }), 'garbage')
    assert.equal(changed(hello => { hello.identity.startIds = ['0a', 'X'] }), 'garbage')
  })

  it('refuses the own node name', () => {
    assert.equal(refusalOf(shake(new DialingHandshake(options('a')), new ListeningHandshake(options('a')))[0]), 'self')
  })

  it('agrees on the newest version that both speak, N with N-1', () => {
    const versions = (range: readonly [number, number]) => ({ versions: { min: range[0], max: range[1] } })
    const agreed = (a: readonly [number, number], b: readonly [number, number]): number | string => {
      const [ofDialer, ofListener] = shake(
        new DialingHandshake(options('a', versions(a))), new ListeningHandshake(options('b', versions(b))),
      )
      return ofListener?.kind === 'established' ? established(ofDialer).version : refusalOf(ofListener)
    }
    assert.equal(agreed([1, 2], [2, 3]), 2)
    assert.equal(agreed([2, 3], [1, 2]), 2)
    assert.equal(agreed([2, 3], [2, 3]), 3)
    assert.equal(agreed([1, 1], [2, 3]), 'version')
    assert.equal(agreed([3, 4], [1, 2]), 'version')
  })

  it('refuses a version that was not offered, even from a listener that holds the secret', () => {
    const dialer = new DialingHandshake(options('a', { versions: { min: 2, max: 3 } }))
    const listener = new ListeningHandshake(options('b', { versions: { min: 1, max: 9 } }))
    const hello = handshakeType.decode(dialer.hello).hello
    const lowered = handshakeType.encode({ hello: { ...hello, minVersion: 1, maxVersion: 1 } })
    const step = listener.receive(lowered)
    assert(step.kind === 'continue')
    assert.equal(refusalOf(dialer.receive(step.send)), 'secret', 'a lowered range breaks the proof')
  })

  it('refuses a replayed dialer, because the listener sends a new nonce each time', () => {
    const recorded: Uint8Array[] = []
    shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b')), (frame, index) => {
      if (index % 2 === 0) recorded.push(frame)
      return frame
    })
    const listener = new ListeningHandshake(options('b'))
    const [hello, proof] = recorded
    assert(hello && proof)
    assert.equal(listener.receive(hello).kind, 'continue')
    assert.equal(refusalOf(listener.receive(proof)), 'secret')
  })

  it('refuses a replayed listener', () => {
    const recorded: Uint8Array[] = []
    shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b')), (frame, index) => {
      if (index % 2 === 1) recorded.push(frame)
      return frame
    })
    assert(recorded[0])
    assert.equal(refusalOf(new DialingHandshake(options('a')).receive(recorded[0])), 'secret')
  })

  it('refuses its own challenge reflected, in either role', () => {
    const dialer = new DialingHandshake(options('a'))
    const mirrored = new ListeningHandshake(options('a', { nonce: handshakeType.decode(dialer.hello).hello.nonce }))
    assert.equal(refusalOf(mirrored.receive(dialer.hello)), 'garbage')
    // A listener's proof from a second connection to it is not valid as a dialer's proof.
    const listener = new ListeningHandshake(options('b'))
    const step = listener.receive(new DialingHandshake(options('x')).hello)
    assert(step.kind === 'continue')
    const { proof } = handshakeType.decode(step.send).welcome
    assert.equal(refusalOf(listener.receive(handshakeType.encode({ proof: { proof } }))), 'secret')
  })

  it('refuses an identity that was changed in transit', () => {
    const tamperHello: Tamper = (frame, index) => {
      if (index !== 0) return frame
      const { hello } = handshakeType.decode(frame)
      return handshakeType.encode({ hello: { ...hello, identity: { ...hello.identity, node: 'mallory' } } })
    }
    assert.equal(
      refusalOf(shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b')), tamperHello)[0]),
      'secret',
    )
    const tamperWelcome: Tamper = (frame, index) => {
      if (index !== 1) return frame
      const { welcome } = handshakeType.decode(frame)
      const core = welcomeCoreType.decode(welcome.core)
      const forged = welcomeCoreType.encode({ ...core, identity: { ...core.identity, clusterId: 'c9' } })
      return handshakeType.encode({ welcome: { core: forged, proof: welcome.proof } })
    }
    assert.equal(
      refusalOf(shake(new DialingHandshake(options('a')), new ListeningHandshake(options('b')), tamperWelcome)[0]),
      'secret',
    )
  })

  it('refuses a proof before a hello, a second hello, and other unexpected frames', () => {
    const proof = handshakeType.encode({ proof: { proof: Buffer.alloc(32) } })
    assert.equal(refusalOf(new ListeningHandshake(options('b')).receive(proof)), 'garbage')
    assert.equal(
      refusalOf(new DialingHandshake(options('a')).receive(handshakeType.encode({ accepted: {} }))), 'garbage',
    )
    const listener = new ListeningHandshake(options('b'))
    const { hello } = new DialingHandshake(options('a'))
    listener.receive(hello)
    assert.equal(refusalOf(listener.receive(hello)), 'garbage')
  })

  it('removes control characters from the text of unknown peers', () => {
    const step = new DialingHandshake(options('a')).receive(
      handshakeType.encode({ refused: { reason: 'line\n\u001b[31mred' } }),
    )
    assert(step.kind === 'refused')
    assert.equal(step.refusal.reason, 'line??[31mred')
  })

  it('survives any bytes, in any order', () => {
    const valid = (): Uint8Array => new DialingHandshake(options('a')).hello
    const frame = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.constant('hello'))
    fc.assert(fc.property(fc.array(frame, { maxLength: 5 }), frames => {
      for (const machine of [new ListeningHandshake(options('b')), new DialingHandshake(options('c'))]) {
        for (const frame of frames) {
          const step = machine.receive(frame === 'hello' ? valid() : frame)
          assert.notEqual(step.kind, 'established')
        }
      }
    }), { numRuns: 300 })
  })

  it('opens no link when one bit of one frame differs', () => {
    fc.assert(fc.property(fc.nat(3), fc.nat(), fc.nat(7), (target, at, bit) => {
      const flip: Tamper = (frame, index) => {
        if (index !== target) return frame
        const changed = Buffer.from(frame)
        changed.writeUInt8(changed.readUInt8(at % changed.length) ^ (1 << bit), at % changed.length)
        return changed
      }
      const [ofDialer, ofListener] = shake(
        new DialingHandshake(options('a')), new ListeningHandshake(options('b')), flip,
      )
      // The last frame has no content that matters, because the listener has decided before.
      assert(ofDialer.kind !== 'established' || target === 3)
      assert(ofListener?.kind !== 'established' || target === 3)
    }), { numRuns: 300 })
  })
})

describe('the cluster secret', () => {
  it('has at least 32 characters', () => {
    assert.throws(() => checkClusterSecret('x'.repeat(31)), /31 characters, at least 32/)
    assert.doesNotThrow(() => checkClusterSecret('x'.repeat(32)))
  })
})
