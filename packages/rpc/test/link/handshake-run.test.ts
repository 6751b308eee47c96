import assert from 'node:assert/strict'
import { ManualClock, SeededRandom } from '@sectional/runtime'
import type { Connection } from '@sectional/runtime'
import { DialingHandshake, ListeningHandshake } from '../../src/link/handshake.ts'
import type { HandshakeOptions } from '../../src/link/handshake.ts'
import { HandshakeRun } from '../../src/link/handshake-run.ts'
import { handshakeType } from '../../src/schema/schema.ts'
import { secret } from '../test-node.ts'

const random = new SeededRandom(1)
const timeoutMs = 1000

function optionsOf(node: string): HandshakeOptions {
  const instance = Buffer.from(random.bytes(16)).toString('hex')
  return { identity: { node, address: `${node}:1`, clusterId: 'c1', instance }, secret, nonce: random.bytes(32) }
}

/** The end of the dialing side, with the steps that it has sent. */
class FakeConnection implements Connection {
  readonly remoteAddress = 'b:1'
  readonly certifiedNames = null
  readonly bufferedBytes = 0
  readonly sent: Uint8Array[] = []
  closed = false
  onFrame: ((frame: Uint8Array) => void) | undefined
  onClose: ((reason: string) => void) | undefined

  send(frame: Uint8Array): void { this.sent.push(frame) }
  pause(): void {}
  resume(): void {}
  limitReceived(): void {}
  close(): void { this.closed = true }

  get steps(): readonly unknown[] {
    return this.sent.map(frame => handshakeType.decode(frame).step)
  }
}

describe('the run of a handshake', () => {
  const start = (): { connection: FakeConnection; clock: ManualClock; failures: string[] } => {
    const [connection, clock, failures] = [new FakeConnection(), new ManualClock(), [] as string[]]
    const machine = new DialingHandshake(optionsOf('a'))
    new HandshakeRun({
      connection, machine, first: machine.hello, clock, timeoutMs, admit: () => null,
      onEstablished: () => { throw new Error('the handshake is not complete') },
      onFailed: ({ kind }) => { failures.push(kind) }, onConnectionClosed: () => {},
    })
    return { connection, clock, failures }
  }

  it('tells a peer that does not answer why it ends', async () => {
    const { connection, clock, failures } = start()
    await clock.advance(timeoutMs)
    assert.deepEqual([connection.steps, connection.closed, failures], [['hello', 'refused'], true, ['timeout']])
  })

  it('opens no link when it takes too long to decide whether the peer is admitted', async () => {
    const [connection, clock, failures] = [new FakeConnection(), new ManualClock(), [] as string[]]
    const admission = Promise.withResolvers<null>()
    let links = 0
    new HandshakeRun({
      connection, machine: new ListeningHandshake(optionsOf('b')), clock, timeoutMs, admit: () => admission.promise,
      onEstablished: () => {
        links++
        return { receive: () => {}, connectionClosed: () => {} }
      },
      onFailed: ({ kind }) => { failures.push(kind) }, onConnectionClosed: () => {},
    })
    const dialer = new DialingHandshake(optionsOf('a'))
    connection.onFrame!(dialer.hello)
    connection.onFrame!(dialer.receive(connection.sent[0]!).send!)
    await clock.advance(timeoutMs)
    admission.resolve(null)
    await clock.advance(0)
    assert.deepEqual([connection.steps, links, failures], [['welcome', 'refused'], 0, ['timeout']])
  })

  it('sends nothing after its proof, because the peer may use the link already', async () => {
    const { connection, clock, failures } = start()
    const listener = new ListeningHandshake(optionsOf('b'))
    const welcome = listener.receive(connection.sent[0]!)
    connection.onFrame!(welcome.send!)
    assert.equal(listener.receive(connection.sent[1]!).kind, 'established')
    await clock.advance(timeoutMs)
    assert.deepEqual([connection.steps, connection.closed, failures], [['hello', 'proof'], true, ['timeout']])
  })
})
