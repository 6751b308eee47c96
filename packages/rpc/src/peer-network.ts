import { ReplicaError } from '@sectional/core'
import type {
  ControlPeer, ForeignContact, IndexReplica, PeerHandlers, PeerIdentity, PeerNetwork, ShardId, ShardPeer, ShardReplica,
} from '@sectional/core'
import type { Log, NetworkAddress, NetworkListener, Runtime } from '@sectional/runtime'
import { ControlCaller, ControlClient } from './control/control-client.ts'
import { controlCallClass, guestVerbs, prepareControlCall } from './control/control-service.ts'
import { decodeRaft } from './control/raft-codec.ts'
import { RaftSender } from './control/raft-sender.ts'
import type { SealFrames } from './frame/frame-codec.ts'
import { defaultLimits } from './link/limits.ts'
import type { RpcLimits } from './link/limits.ts'
import type { CallClass } from './link/call-budget.ts'
import type { Caller } from './link/caller.ts'
import type { Work } from './link/calls-served.ts'
import { checkClusterSecret, instanceBytes } from './link/handshake.ts'
import type { LinkIdentity } from './link/handshake.ts'
import type { LinkService, PeerLink } from './link/peer-link.ts'
import { PeerLinks } from './link/peer-links.ts'
import { RpcMetrics } from './link/rpc-metrics.ts'
import type { PayloadReader } from './schema/payload.ts'
import { ProtocolError } from './schema/schema.ts'
import type { WireMessage } from './schema/schema.ts'
import { encodeShard } from './shard/record-codec.ts'
import { RemoteShard } from './shard-peer/remote-shard.ts'
import { prepareShardCall, shardCallClass } from './shard-peer/shard-service.ts'

export interface PeerNetworkOptions {
  readonly runtime: Runtime
  readonly identity: PeerIdentity
  /** The address to which the cluster listener binds. Peers connect to `identity.address`. */
  readonly listen: NetworkAddress
  /** The cluster secret, which is the same on every node; at least 32 characters. */
  readonly secret: string
  readonly limits?: Partial<RpcLimits>
  /** Replaces the HMAC of frames where they cross no network. */
  readonly sealFrames?: SealFrames | undefined
  readonly log: Log
}

/** A `PeerNetwork` that also tells the address at which it listens. */
export interface ListeningPeerNetwork extends PeerNetwork {
  /** The bound address; undefined before `start` has resolved. */
  readonly listening: NetworkAddress | undefined
}

/**
 * Creates a node's links with its peers over `runtime.network`.
 *
 * @throws Error when the secret is too short
 */
export function createPeerNetwork(options: PeerNetworkOptions): ListeningPeerNetwork {
  checkClusterSecret(options.secret)
  return new LinkedPeerNetwork(options)
}

class LinkedPeerNetwork implements ListeningPeerNetwork, LinkService {
  readonly #options: PeerNetworkOptions
  readonly #limits: RpcLimits
  readonly #metrics: RpcMetrics
  readonly #links: PeerLinks
  readonly #raft: RaftSender
  #handlers: PeerHandlers | undefined
  #listener: NetworkListener | undefined

  constructor(options: PeerNetworkOptions) {
    const { runtime, secret, sealFrames, log, identity: { node, address, clusterId } } = options
    this.#options = options
    this.#limits = Object.freeze({ ...defaultLimits, ...options.limits })
    this.#metrics = new RpcMetrics(runtime.metrics)
    this.#raft = new RaftSender(this.#limits, this.#metrics, log)
    const instance = Buffer.from(runtime.random.bytes(instanceBytes)).toString('hex')
    this.#links = new PeerLinks({
      runtime, log, secret, sealFrames,
      limits: this.#limits,
      metrics: this.#metrics,
      identity: { node, address, clusterId, instance },
      service: this,
    })
    runtime.metrics.onCollect(() => { this.#metrics.queuedBytes.set(this.#links.queuedBytes) })
  }

  get listening(): NetworkAddress | undefined { return this.#listener?.address }

  async start(handlers: PeerHandlers): Promise<void> {
    this.#handlers = handlers
    this.#listener = await this.#options.runtime.network.listen(
      this.#options.listen, connection => { this.#links.accept(connection) },
      caller => { this.#links.reportRefused(caller) },
    )
  }

  async stop(): Promise<void> {
    const listenerClosed = this.#listener?.close()
    await this.#links.stop()
    await listenerClosed
  }

  setPeers(addresses: readonly string[], names?: ReadonlyMap<string, string>): void {
    this.#links.setPeers(addresses, names)
  }

  setIdentity(identity: PeerIdentity): void { this.#links.setIdentity(identity) }

  untried(): readonly string[] { return this.#links.untried() }

  rivalReason(): string | null { return this.#links.rivalReason }

  connected(): readonly PeerIdentity[] { return this.#links.connected() }

  onChange(listener: (peer: PeerIdentity, up: boolean) => void): () => void { return this.#links.onChange(listener) }

  onForeign(listener: (contact: ForeignContact) => void): () => void { return this.#links.onForeign(listener) }

  control(node: string): ControlPeer {
    return new ControlClient(this.#caller(node), message => { this.#raft.send(this.#links.best(node), message) })
  }

  replica(node: string, shard: ShardId): ShardReplica { return this.#shard(node, shard).replica }

  indexes(node: string, shard: ShardId): IndexReplica { return this.#shard(node, shard).indexes }

  classOf(call: WireMessage): CallClass { return shardCallClass(call) ?? controlCallClass(call) ?? 'data' }

  prepare(peer: LinkIdentity, call: WireMessage, payload: PayloadReader): Work {
    const handlers = this.#handlers
    if (!handlers) throw new ReplicaError('closed', 'this node is starting')
    if (peer.clusterId === null && !guestVerbs.has(call.verb)) {
      throw new ReplicaError(
        'protocol', `${peer.node} was not admitted to a cluster: it may only ask for ${[...guestVerbs].join(' and ')}`,
      )
    }
    const work = prepareShardCall(call, payload, handlers, peer, this.#limits.pageBytes)
      ?? prepareControlCall(call, payload, () => handlers.control(peer))
    if (!work) throw new ProtocolError('an unknown verb')
    return work
  }

  async probe(link: PeerLink, timeoutMs: number): Promise<boolean> {
    try {
      await new ControlCaller(link).status({ timeoutMs })
      return true
    } catch (error) {
      return error instanceof ReplicaError && !['timeout', 'unreachable', 'closed'].includes(error.code)
    }
  }

  receiveRaft(peer: LinkIdentity, wire: WireMessage, payload: PayloadReader): void {
    const message = decodeRaft(wire, payload)
    payload.finish()
    const reason = peer.clusterId === null ? 'the node was not admitted'
      : message.from !== peer.node ? `it claims to be from ${message.from}`
      : null
    if (reason !== null) {
      return this.#options.log.warn({ peer: peer.node, type: message.type, reason }, 'a consensus message was dropped')
    }
    this.#handlers?.control(peer).sendRaft(message)
  }

  #shard(node: string, shard: ShardId): ShardPeer {
    return new RemoteShard({ caller: this.#caller(node), shard: encodeShard(shard) })
  }

  #caller(node: string): Caller {
    const link = ({ name, since = 0 }: { readonly name: string; readonly since?: number }): PeerLink => {
      const best = this.#links.best(node)
      if (best !== undefined && best.version < since) {
        throw new ReplicaError('not_hosted', `${node} runs an earlier version, which has no ${name}`)
      }
      if (best !== undefined) return best
      throw this.#links.stopped
        ? new ReplicaError('closed', 'this node is stopping', { nothingDone: true })
        : new ReplicaError('unreachable', `no link to ${node} is open`, { nothingDone: true })
    }
    return {
      call: async (verb, shard, request, context) => link(verb).call(verb, shard, request, context),
      upload: async (verb, shard, chunks, context) => link(verb).upload(verb, shard, chunks, context),
      scan: (verb, shard, request, context) => ({
        [Symbol.asyncIterator]: () => {
          try {
            return link(verb).scan(verb, shard, request, context)
          } catch (error) {
            return failedIterator(error)
          }
        },
      }),
    }
  }
}

function failedIterator(error: unknown): AsyncIterator<never> {
  return { next: () => Promise.reject(error), return: async () => ({ done: true, value: undefined }) }
}
