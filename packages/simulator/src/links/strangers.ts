import { ReplicaError } from '@sectional/core'
import type { PeerHandlers, PeerNetwork } from '@sectional/core'
import { createMemoryRuntime, SeededRandom } from '@sectional/runtime'
import type { Connection, MemoryRuntime } from '@sectional/runtime'
import { createPeerNetwork } from '@sectional/server'
import type { RpcLimits } from '@sectional/server'
import { ChecksumSeal } from '../world/checksum-seal.ts'
import { NodeLog } from '../world/node-log.ts'
import { clusterPort, clusterSecret } from '../world/node-settings.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import { exchangeShard } from './served-exchanges.ts'

/** Long enough for several attempts. */
const attemptsMs = 3000
const joinedMs = 2000
/** Longer than a member may take to answer, and shorter than the silence after which its link is closed. */
const silentMs = 2000
const pollMs = 100
/** Calls of which the answers, and then the refusals, are not read. */
const unreadCalls = 2500
/** Milliseconds after which the link to a peer that reads nothing must be closed: it is examined once a second. */
const unreadMs = 3000
const neverMs = 1_000_000_000
const failedHandshakes = 5
/** Handshakes that are begun and not continued, besides those that the limit allows. */
const halfOpen = 6
const halfOpenMs = 500
/** Longer than a handshake takes at most. */
const handshakeMs = 7000

interface StrangerOptions {
  readonly limits?: Partial<RpcLimits>
  readonly secret?: string
  readonly name?: string
}

/** A process that is not a node of the simulated cluster. */
class Stranger {
  readonly network: PeerNetwork
  /** The connections that it has dialed. */
  readonly connections: Connection[] = []
  readonly #runtime: MemoryRuntime

  constructor(
    world: World, host: string, clusterId: string | null,
    { limits = {}, secret = clusterSecret, name = `${host}@sim` }: StrangerOptions = {},
  ) {
    const log = new NodeLog((level, text) => world.say(`${host} ${level} ${text}`))
    this.#runtime = createMemoryRuntime({
      node: host, clock: world.queue, hub: world.hub, log, random: new SeededRandom(world.dice.fork(host).seed()),
    })
    const { network } = this.#runtime
    const dialing = {
      listen: network.listen.bind(network),
      connect: async (...to: Parameters<typeof network.connect>): Promise<Connection> => {
        const connection = await network.connect(...to)
        this.connections.push(connection)
        return connection
      },
    }
    this.network = createPeerNetwork({
      runtime: { ...this.#runtime, network: dialing }, log, limits, secret, sealFrames: key => new ChecksumSeal(key),
      identity: { node: name, address: `${host}:${clusterPort}`, clusterId },
      listen: { host, port: clusterPort },
    })
  }

  async dial(node: SimulatedNode): Promise<void> {
    await this.network.start(nothingHosted)
    this.network.setPeers([`${node.host}:${clusterPort}`])
  }

  end(): void { this.#runtime.revoke() }
}

const nothingHosted: PeerHandlers = {
  control: () => { throw new ReplicaError('closed', 'a stranger answers nothing') },
  replica: () => undefined,
  indexes: () => undefined,
}

/** A node of another cluster with the same secret dials. No link opens. */
export function foreignNode(world: World, node: SimulatedNode): Promise<void> {
  return getsNoLink(world, node, new Stranger(world, 'foreigner', 'another cluster'), 'a node of another cluster')
}

/** A process that does not know the secret of the cluster dials. No link opens. */
export function otherSecret(world: World, node: SimulatedNode): Promise<void> {
  const stranger = new Stranger(world, 'outsider', clusterOf(node), { secret: clusterSecret.toUpperCase() })
  return getsNoLink(world, node, stranger, 'a process with another secret')
}

/** A process that has the name of a member, or of the node itself, dials while the member has a link. No link opens. */
export function rivalNode(world: World, node: SimulatedNode, member: SimulatedNode): Promise<void> {
  const stranger = new Stranger(world, 'rival', clusterOf(node), { name: member.name })
  return getsNoLink(world, node, stranger, `a second process named ${member.name}`)
}

/**
 * A process without a cluster that has the name of a member dials while the member does not answer for a moment. No
 * link opens.
 */
export async function guestWithName(world: World, node: SimulatedNode, member: SimulatedNode): Promise<void> {
  const stranger = new Stranger(world, 'namesake', null, { name: member.name })
  world.pause(member.number)
  const refused = getsNoLink(world, node, stranger, `a process without a cluster named ${member.name}`)
  await world.sleep(silentMs)
  world.continue(member.number)
  await refused
}

/** A guest, and a process that was removed from the cluster, send consensus messages in the name of a member. */
export async function falseMessages(world: World, node: SimulatedNode, member: SimulatedNode): Promise<void> {
  const senders = [new Stranger(world, 'visitor', null), new Stranger(world, 'leaver', clusterOf(node))]
  await Promise.all(senders.map(sender => sender.dial(node)))
  await world.sleep(joinedMs)
  for (const { network } of senders) {
    network.control(node.name).sendRaft({
      type: 'append-reply', from: member.name, to: node.name, term: 0, success: false, matchIndex: 0,
      conflictIndex: 0, round: 0,
    })
  }
  await world.sleep(pollMs)
  for (const sender of senders) sender.end()
}

function clusterOf(node: SimulatedNode): string | null {
  return node.inside?.control.state()?.clusterId ?? null
}

async function getsNoLink(world: World, node: SimulatedNode, stranger: Stranger, what: string): Promise<void> {
  await stranger.dial(node)
  const endMs = world.nowMs + attemptsMs
  while (world.nowMs < endMs) {
    await world.sleep(pollMs)
    if (stranger.network.connected().length === 0) continue
    return world.fail('safety', 'one-cluster', `${what} has a link with ${node.name}`)
  }
  stranger.end()
}

/** A node that was not admitted is told the status, and may neither change the metadata nor use replicas. */
export async function guestPeer(world: World, node: SimulatedNode): Promise<void> {
  const stranger = new Stranger(world, 'guest', null)
  await stranger.dial(node)
  await world.sleep(joinedMs)
  const context = { timeoutMs: attemptsMs }
  const control = stranger.network.control(node.name)
  const replica = stranger.network.replica(node.name, exchangeShard)
  const outcome = async (call: Promise<unknown>): Promise<string> => call.then(() => 'ok', error => String(error.code))
  const outcomes = [
    await outcome(control.status(context)), await outcome(control.propose({ kind: 'nonsense' }, context)),
    await outcome(control.ask({ question: 'config', argument: {} }, context)),
    await outcome(replica.openLocalDocuments([], context)),
  ].join(' ')
  if (outcomes !== 'ok protocol protocol protocol') {
    world.fail('safety', 'guests-limited', `the calls of a guest on ${node.name} ended as ${outcomes}`)
  }
  stranger.end()
}

/** A peer makes many calls and reads nothing more. The node ends the link instead of keeping ever more answers. */
export async function unreadingPeer(world: World, node: SimulatedNode): Promise<void> {
  const stranger = new Stranger(world, 'reader', null, {
    limits: { silenceMs: neverMs, maxControlCallsOut: unreadCalls },
  })
  await stranger.dial(node)
  await world.sleep(joinedMs)
  const end = world.hub.endsOf(node.host).find(({ to }) => to === 'reader')
  if (end !== undefined && stranger.network.connected().length > 0) {
    for (const connection of stranger.connections) connection.pause()
    const peer = stranger.network.control(node.name)
    for (let call = 0; call < unreadCalls; call++) void peer.status({ timeoutMs: neverMs }).catch(() => {})
    await world.sleep(unreadMs)
    if (end.isOpen) {
      const kept = `${node.name} keeps ${end.bufferedBytes} bytes for a peer that reads nothing`
      world.fail('safety', 'queues-bounded', kept)
    }
  }
  stranger.end()
}

/**
 * Connections that begin no handshake, fail in it, or do not continue it. At most `unfinishedMax` of them stay open,
 * and none after the time that a handshake may take.
 */
export async function manyHandshakes(world: World, node: SimulatedNode, unfinishedMax: number): Promise<void> {
  const host = 'crowd'
  const network = world.hub.network(host, world.queue)
  const connect = (): Promise<Connection> =>
    network.connect({ host: node.host, port: clusterPort }, { timeoutMs: handshakeMs })
  const connections: Connection[] = []
  for (let count = 0; count < failedHandshakes + unfinishedMax + halfOpen; count++) {
    const connection = await connect()
    connection.onFrame = () => {}
    connection.onClose = () => {}
    connections.push(connection)
    if (count < failedHandshakes) connection.send(Buffer.from('no handshake'))
  }
  const open = (): number => world.hub.endsOf(node.host).filter(({ to }) => to === host).length
  const demand = (openMax: number): void => {
    if (open() <= openMax) return
    const kept = `${node.name} keeps ${open()} connections without a handshake, and ${openMax} are allowed`
    world.fail('safety', 'handshakes-bounded', kept)
  }
  await world.sleep(halfOpenMs)
  demand(unfinishedMax)
  await world.sleep(handshakeMs)
  demand(0)
  network.revoke()
}
