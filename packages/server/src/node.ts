/**
 * The composition root: the only module that knows every part of a node. It uses only the `Runtime` that it receives,
 * so a node behaves the same in a process of its own, in a test and in the simulator.
 */
import {
  AntiEntropy, BackgroundIndexes, ControlPlaneNode, DatabaseEvents, DesignChangeNotices, Upkeep, UserDatabases,
  backgroundIndexDeclarations, createCoordinator, databaseEventsDeclarations, defaultControlPlaneOptions,
  designDocumentDeclarations, userDatabasesDeclarations,
  type AntiEntropyOptions, type ControlPlane, type ControlPlaneOptions, type ControlPlaneParts, type Coordinator,
  type CoordinatorNode, type CoordinatorOptions, type IndexDirectory, type ReplicaDirectory,
} from '@sectional/cluster'
import {
  answerNodeQuestion, AuditStream, createHttpApi, definitionsOf, httpDeclarations, type NodeInformation,
} from '@sectional/http'
import { createPeerNetwork, type RpcLimits, type SealFrames } from '@sectional/rpc'
import type { HttpAddress, HttpServer, Runtime } from '@sectional/runtime'
import {
  reduceDeclarations, ShardHost, type CacheLimits, type IndexedReplica, type ScrubOptions,
} from '@sectional/shard'
import type { IndexReplica, NodeQuestion, PeerNetwork, ShardId, ShardReplica } from '@sectional/core'
import type { OptionValues } from '@sectional/core/options'
import { addressProblem } from './configuration/listening-addresses.ts'
import type { LiveConfiguration } from './configuration/live-configuration.ts'
import { apiAddresses, type NodeOptions } from './configuration/node-options.ts'
import type { Settings } from './configuration/settings.ts'
import { auditClusterChanges, auditUserDatabase } from './information/cluster-audit.ts'
import { SharedSettings } from './configuration/shared-settings.ts'
import { ApiServers } from './hosting/api-servers.ts'
import { HostedReplicas } from './hosting/hosted-replicas.ts'
import { javascriptViews, type ViewFunctions } from './hosting/javascript-views.ts'
import { createNodeInformation } from './information/node-information.ts'

export interface NodeParts {
  readonly options: NodeOptions
  readonly configuration: LiveConfiguration
  /** The version of Sectional. */
  readonly version: string
  /** Called when an invariant is broken; the owner of the process must end it. */
  readonly onFatal: (error: Error) => void
  /** Set by tests only. */
  readonly seams?: NodeSeams
}

/**
 * Hooks between the parts of a node, with which a test can plant a bug: each wraps an interface of one part that other
 * parts use, or replaces its limits.
 */
export interface NodeSeams {
  /** Wraps the metadata as the HTTP API, the coordinator and the recording of events see it. */
  readonly control?: (control: ControlPlane) => ControlPlane
  /** Wraps a local replica as this node and its peers see it. */
  readonly replica?: (shard: ShardId, replica: ShardReplica) => ShardReplica
  /** Wraps the links to the peers. */
  readonly network?: (network: PeerNetwork) => PeerNetwork
  readonly antiEntropy?: Partial<AntiEntropyOptions>
  readonly caches?: Partial<CacheLimits>
  readonly scrub?: Partial<ScrubOptions>
  readonly controlPlane?: Partial<ControlPlaneOptions>
  readonly coordinator?: Partial<CoordinatorOptions>
  readonly links?: Partial<RpcLimits>
  readonly sealFrames?: SealFrames
  /** Replaces the functions of views. */
  readonly views?: ViewFunctions
  /**
   * Wraps the function that returns the indexes of a local replica, as this node and its peers call it. It always
   * returns an object; its calls reject with `not_hosted` where there is no replica.
   */
  readonly indexes?: (indexes: (shard: ShardId) => IndexReplica) => (shard: ShardId) => IndexReplica
  /** False: queries make all their reads of indexes by calls of `indexes`, and none at once from memory. */
  readonly immediateIndexes?: boolean
  /** Wraps a replica as its own indexes see it. */
  readonly indexed?: (indexed: IndexedReplica) => IndexedReplica
}

export interface Node {
  /**
   * Opens the disk, the cluster listener and the HTTP listener. The node joins or forms its cluster in the background;
   * `control.unavailableReason()` returns null when it has done so.
   * @throws StorageError, or Error when an address cannot be bound or the node is stopped meanwhile; everything is then
   * closed again
   */
  start(): Promise<void>
  /** Lets running requests finish, then closes everything. May be called at any time, and more than once. */
  stop(): Promise<void>
  /** Throws before the node is started, as the members below do. */
  readonly http: HttpServer['address']
  /** null when the API is not served by HTTPS. */
  readonly https: HttpServer['address'] | null
  readonly control: ControlPlane
  readonly coordinator: Coordinator
}

const secretBytes = 32
const liveDeclarations = {
  ...httpDeclarations, ...databaseEventsDeclarations, ...designDocumentDeclarations, ...reduceDeclarations,
  ...userDatabasesDeclarations, ...backgroundIndexDeclarations,
}

export function createNode(runtime: Runtime, parts: NodeParts): Node {
  return new ComposedNode(runtime, parts)
}

class ComposedNode implements Node {
  readonly #runtime: Runtime
  readonly #parts: NodeParts
  readonly #views: ViewFunctions
  readonly #liveOptions: OptionValues<typeof liveDeclarations>
  readonly #audit: AuditStream
  /** The functions that close the open parts, in the order of opening. */
  readonly #closers: (() => Promise<void>)[] = []
  #control: ControlPlaneNode | undefined
  #coordinator: Coordinator | undefined
  #servers: ApiServers | undefined
  #opening: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  constructor(runtime: Runtime, parts: NodeParts) {
    this.#runtime = runtime
    this.#parts = parts
    this.#liveOptions = parts.configuration.options(liveDeclarations)
    this.#audit = new AuditStream({ runtime, node: parts.options.name, options: this.#liveOptions })
    this.#views = parts.seams?.views ?? javascriptViews(runtime, this.#liveOptions)
  }

  get control(): ControlPlane {
    if (this.#control === undefined) throw new Error('the node is not started')
    return this.#control
  }

  get coordinator(): Coordinator {
    if (this.#coordinator === undefined) throw new Error('the node is not started')
    return this.#coordinator
  }

  get http(): HttpServer['address'] {
    const http = this.#servers?.addresses[0]
    if (http === undefined) throw new Error('the node is not started')
    return http
  }

  get https(): HttpServer['address'] | null {
    if (this.#servers === undefined) throw new Error('the node is not started')
    return this.#servers.addresses[1] ?? null
  }

  async start(): Promise<void> {
    this.#opening = this.#open()
    try {
      await this.#opening
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#close()
    return this.#stopping
  }

  async #close(): Promise<void> {
    // Wait for the opening, because a part can only be closed when it is open. `start` reports an error of the opening.
    await this.#opening?.catch(() => {})
    await this.#closeAll()
    await this.#audit.stop()
  }

  async #closeAll(): Promise<void> {
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) await closer()
  }

  async #open(): Promise<void> {
    const runtime = this.#runtime
    const { options, seams = {} } = this.#parts
    const host = await ShardHost.open(runtime, {
      compaction: options.compaction, indexes: options.indexes, indexerOf: this.#views.indexerOf,
      caches: seams.caches, scrub: seams.scrub, indexed: seams.indexed,
    })
    this.#closers.push(() => host.close())
    this.#assertWanted()
    const hosted = new HostedReplicas({
      node: options.name, host, clock: runtime.clock, log: runtime.log, seam: seams.replica,
    })
    const localIndexes = (shard: ShardId): IndexReplica => hosted.indexesOrAbsent(shard)
    const indexes = seams.indexes?.(localIndexes) ?? localIndexes
    const links = this.#createNetwork()
    const network = seams.network?.(links) ?? links

    const control: ControlPlaneNode = new ControlPlaneNode({
      runtime, network,
      ...this.#controlParts(),
      replica: shard => hosted.planned(shard),
      indexes: shard => hosted.planned(shard) && indexes(shard),
      answer: (question, argument) => this.#answer(control, nodeInformation, question, argument),
      renewReplicas: () => hosted.renew(),
      onDesignChange: incarnation => designChanged(incarnation),
    })
    this.#control = control
    const metadata = seams.control?.(control) ?? control
    const nodeInformation = this.#createInformation(control, hosted, () => antiEntropy)
    const replicas = this.#directory(network, control, hosted)
    const antiEntropy: AntiEntropy = new AntiEntropy({
      runtime, control, replicas, local: hosted, peers: network, options: seams.antiEntropy,
    })
    const coordinator: CoordinatorNode = this.#createCoordinator(metadata, replicas, antiEntropy, () => designChanges, {
      indexes: (node, shard) => node === options.name ? indexes(shard) : network.indexes(node, shard),
      ...(seams.immediateIndexes !== false && { immediate: shard => hosted.immediateIndexes(shard) }),
    })

    this.#coordinator = coordinator
    const designChanges: DesignChangeNotices = new DesignChangeNotices({
      control, local: hosted, peers: network, onChange: incarnation => designChanged(incarnation),
    })
    const backgroundIndexes = this.#createBackgroundIndexes(control, hosted, coordinator, indexes)
    const designChanged = (incarnation: string): void => {
      coordinator.designChanged(incarnation)
      backgroundIndexes.designChanged(incarnation)
    }
    const upkeep = new Upkeep({ runtime, control, replicas, local: hosted, coordinator })
    const databaseEvents = this.#createDatabaseEvents(metadata, hosted, coordinator)
    const userDatabases = this.#createUserDatabases(metadata, coordinator)
    this.#closers.push(
      () => hosted.stop(), () => control.stop(), () => antiEntropy.stop(), () => coordinator.stop(),
      () => designChanges.stop(), () => backgroundIndexes.stop(), () => upkeep.stop(), () => databaseEvents.stop(),
      () => userDatabases.stop(),
    )
    // Both must follow the metadata from its first state on: a replica that may have missed writes must not decide any.
    hosted.start(control)
    designChanges.start()
    backgroundIndexes.start()
    antiEntropy.start()
    await control.start()
    this.#assertWanted()
    this.#closers.push(auditClusterChanges(control, this.#audit), this.#followSettings(metadata))
    upkeep.start()
    databaseEvents.start()
    userDatabases.start()
    const unsubscribe = this.#parts.configuration.onChange(() => { userDatabases.look() })
    this.#closers.push(async () => { unsubscribe() })
    await this.#serve(metadata, coordinator, databaseEvents, nodeInformation)
  }

  /** Reopens the node after it has discarded its data directory, like a restart of its process. */
  #reopen(): void {
    if (this.#stopping !== undefined) return
    const reopened = this.#closeAll().then(() => { this.#assertWanted(); return this.#open() })
    this.#opening = reopened
    reopened.catch((error: Error) => { if (this.#stopping === undefined) this.#parts.onFatal(error) })
  }

  #assertWanted(): void {
    if (this.#stopping !== undefined) throw new Error('the node was stopped while it started')
  }

  #controlParts(): Pick<ControlPlaneParts, 'identity' | 'options' | 'onGivenUp' | 'onFatal'> {
    const { options: { name, zone, cluster }, seams, onFatal } = this.#parts
    return {
      identity: { node: name, address: cluster.advertised, zone, seeds: cluster.seeds },
      options: { ...defaultControlPlaneOptions, formationGraceMs: cluster.formationGraceMs, ...seams?.controlPlane },
      onGivenUp: () => this.#reopen(),
      onFatal,
    }
  }

  #followSettings(control: ControlPlane): () => Promise<void> {
    const end = this.#parts.configuration.follow(new SharedSettings(control))
    return async () => { end() }
  }

  /** Answers a question of another node. */
  #answer(
    control: ControlPlane, nodeInformation: NodeInformation, question: NodeQuestion, argument: unknown,
  ): Promise<unknown> {
    const { log, clock, random } = this.#runtime
    const answering = {
      nodeInformation, configuration: this.#parts.configuration, options: this.#liveOptions, control, log, clock,
      random, audit: this.#audit,
    }
    return answerNodeQuestion(answering, question, argument)
  }

  #createNetwork(): PeerNetwork {
    const { options: { name, cluster }, seams } = this.#parts
    const { random, log } = this.#runtime
    return createPeerNetwork({
      runtime: this.#runtime,
      identity: { node: name, address: cluster.advertised, clusterId: null },
      listen: cluster.listen,
      // A cluster of one node without a secret gets a random one, so that no other node can authenticate.
      secret: cluster.secret ?? Buffer.from(random.bytes(secretBytes)).toString('hex'),
      ...(seams?.links && { limits: seams.links }),
      sealFrames: seams?.sealFrames,
      log: log.child({ component: 'rpc' }),
    })
  }

  #createInformation(control: ControlPlane, hosted: HostedReplicas, antiEntropy: () => AntiEntropy): NodeInformation {
    const refills = (): ReturnType<AntiEntropy['refills']> => antiEntropy().refills()
    return createNodeInformation({ runtime: this.#runtime, control, version: this.#parts.version, hosted, refills })
  }

  /** The connected peers are kept in a set, because every request asks for them several times. */
  #directory(network: PeerNetwork, control: ControlPlaneNode, hosted: HostedReplicas): ReplicaDirectory {
    const { name } = this.#parts.options
    let connected = new Set([name])
    // Peers with an older copy of their data do not count as connected, nor do those that are to be admitted.
    const list = (): void => {
      connected = new Set([
        name,
        ...network.connected().filter(peer => peer.clusterId !== null && !control.isOutdated(peer))
          .map(peer => peer.node),
      ])
    }
    list()
    const unsubscribe = [network.onChange(list), control.onChange(list)]
    this.#closers.push(async () => { for (const end of unsubscribe) end() })
    return {
      replica: (node, shard) => node === name ? hosted.replicaOrAbsent(shard) : network.replica(node, shard),
      isConnected: node => connected.has(node),
      isCatchingUp: shard => hosted.isCatchingUp(shard),
    }
  }

  #createCoordinator(
    control: ControlPlane, replicas: ReplicaDirectory, antiEntropy: AntiEntropy,
    designChanges: () => DesignChangeNotices, indexes: IndexDirectory,
  ): CoordinatorNode {
    return createCoordinator({
      runtime: this.#runtime, control, replicas, options: this.#parts.seams?.coordinator,
      views: { ...this.#views, indexes },
      designDocuments: { bytesMax: () => this.#liveOptions.designDocumentBytesMax },
      onDesignWritten: incarnation => designChanges().announce(incarnation),
      onMissed: (shard, node) => antiEntropy.reportMissed(shard, node),
      onSynchronize: db => antiEntropy.synchronize(db),
    })
  }

  #createBackgroundIndexes(
    control: ControlPlane, hosted: HostedReplicas, coordinator: Coordinator, indexes: (shard: ShardId) => IndexReplica,
  ): BackgroundIndexes {
    return new BackgroundIndexes({
      runtime: this.#runtime, control, local: hosted, coordinator, indexes,
      definitionsOf, enabled: () => this.#liveOptions.updatesIndexes,
    })
  }

  #createDatabaseEvents(control: ControlPlane, hosted: HostedReplicas, coordinator: Coordinator): DatabaseEvents {
    return new DatabaseEvents({
      runtime: this.#runtime, control, local: hosted, coordinator,
      enabled: () => this.#liveOptions.recordDatabaseEvents,
      replicas: () => this.#liveOptions.replicasPerShard,
    })
  }

  #createUserDatabases(control: ControlPlane, coordinator: Coordinator): UserDatabases {
    return new UserDatabases({
      runtime: this.#runtime, control, coordinator, settings: this.#liveOptions,
      onChange: change => auditUserDatabase(change, this.#audit),
    })
  }

  async #serve(
    control: ControlPlane, coordinator: CoordinatorNode, databaseEvents: DatabaseEvents,
    nodeInformation: NodeInformation,
  ): Promise<void> {
    const { options, configuration } = this.#parts
    const api = createHttpApi({
      runtime: this.#runtime, control, coordinator, databaseEvents, configuration, nodeInformation,
      options: this.#liveOptions, clusterSecret: options.cluster.secret ?? '', audit: this.#audit,
    })
    const { http, log } = this.#runtime
    const servers = new ApiServers({
      http, log, handler: api.handler, graceMs: options.shutdownGraceMs, endFeeds: () => api.endFeeds(),
      onLost: this.#parts.onFatal,
    })
    this.#closers.push(async () => {
      const closed = servers.close()
      await api.stop()
      await closed
    })
    const opened = servers.open(this.#apiAddresses(configuration.settings()))
    const unsubscribe = configuration.applyFirst(async settings => {
      await opened
      await servers.move(this.#apiAddresses(settings)).catch((error: Error) => { throw addressProblem(error) })
    })
    this.#closers.push(async () => { unsubscribe() })
    await opened
    this.#servers = servers
  }

  /** HTTPS is switched on and off at a start only. */
  #apiAddresses(settings: Settings): readonly HttpAddress[] {
    const { http, https } = apiAddresses(settings)
    return this.#parts.options.https === null ? [http] : [http, { ...https, encrypted: true }]
  }
}
