import { compareRanges, documentHash, findRange, ReplicaError } from '@sectional/core'
import type { HashRange, ShardId, ShardReplica } from '@sectional/core'
import { activeReplicas } from '../control/cluster-state.ts'
import type { DatabaseRecord, ReplicaRecord, ShardRecord } from '../control/cluster-state.ts'
import type { ReplicaDirectory } from './replica-directory.ts'
import type { ReplicaHealth } from './replica-health.ts'

/** One replica of one shard, to which calls can be made. */
export interface Peer {
  readonly node: string
  readonly local: boolean
  /** True when the replica counts towards quorums. */
  readonly active: boolean
  readonly replica: ShardReplica
}

/** One shard of one database, with the placement of its replicas. */
export interface ShardPlace {
  readonly id: ShardId
  /** The database's record when the request began; `ReplicaAccess.now` returns the current place. */
  readonly db: DatabaseRecord
  readonly record: ShardRecord
  readonly activeCount: number
}

interface ShardMap { readonly places: readonly ShardPlace[]; readonly ranges: readonly HashRange[] }

/** Selects the replicas for each purpose, in the order in which they are asked. */
export class ReplicaAccess {
  readonly node: string
  readonly #directory: ReplicaDirectory
  readonly #readHealth: ReplicaHealth
  readonly #decisionHealth: ReplicaHealth
  readonly #databases: () => ReadonlyMap<string, DatabaseRecord> | undefined
  readonly #maps = new WeakMap<DatabaseRecord, ShardMap>()

  /**
   * Reads and decisions have separate health records, so that slow reads do not move decisions: a second decider can
   * cause conflicts, a second reader does no harm.
   */
  constructor(
    node: string, directory: ReplicaDirectory,
    health: { readonly reads: ReplicaHealth; readonly decisions: ReplicaHealth },
    databases: () => ReadonlyMap<string, DatabaseRecord> | undefined = () => undefined,
  ) {
    this.node = node
    this.#directory = directory
    this.#readHealth = health.reads
    this.#decisionHealth = health.decisions
    this.#databases = databases
  }

  places(db: DatabaseRecord): readonly ShardPlace[] {
    return this.#map(db).places
  }

  #map(db: DatabaseRecord): ShardMap {
    const known = this.#maps.get(db)
    if (known !== undefined) return known
    const places = db.shards.map(record => ({
      id: { incarnation: db.incarnation, range: record.range }, db, record, activeCount: activeReplicas(record).length,
    }))
    const map = { places, ranges: db.shards.map(record => record.range) }
    this.#maps.set(db, map)
    return map
  }

  /** Returns the place of a document. Ids of local documents include `_local/`. */
  placeOf(db: DatabaseRecord, id: string): ShardPlace {
    const { places, ranges } = this.#map(db)
    return places[findRange(ranges, documentHash(id, db.partitioned))]!
  }

  /**
   * Returns the place according to the newest shard map that this node knows. It is the same object while the shard's
   * replicas are unchanged.
   */
  now(place: ShardPlace): ShardPlace {
    const db = this.#databases()?.get(place.db.name)
    if (db === undefined || db.shards === place.db.shards || db.incarnation !== place.db.incarnation) return place
    return this.#map(db).places.find(({ id: { range } }) => compareRanges(range, place.id.range) === 0) ?? place
  }

  /**
   * Returns the reachable active replicas in the order in which they are read: this node's replica, then the others in
   * the map's order, then silent nodes. While this node's replica catches up, it comes after the others and before the
   * silent nodes.
   */
  readers(place: ShardPlace): readonly Peer[] {
    return this.#order(place, true)
  }

  /** Returns true when this node's replica is the first of `readers`. */
  readsLocally({ id, record: { replicas } }: ShardPlace): boolean {
    return replicas.some(({ node, filling }) => node === this.node && !filling) && !this.#directory.isCatchingUp(id)
  }

  /** Returns this node's replica if it is the first of `readers`. */
  localReader(place: ShardPlace): ShardReplica | undefined {
    return this.readsLocally(place) ? this.#directory.replica(this.node, place.id) : undefined
  }

  /**
   * Returns the reachable active replicas in the order in which they are asked to decide: the map's order, silent nodes
   * last.
   */
  deciders(place: ShardPlace): readonly Peer[] {
    return this.#order(place, false)
  }

  /** Returns true for the replica that decides in the normal case. */
  isFirst(place: ShardPlace, peer: Peer): boolean {
    return place.record.replicas.find(replica => !replica.filling)?.node === peer.node
  }

  /** Returns this node's replica when it is the only one of its shard, so that no quorum is needed. */
  loneLocal(place: ShardPlace): ShardReplica | undefined {
    const { replicas } = place.record
    const isLone = replicas.length === 1 && replicas[0]!.node === this.node
    return isLone ? this.#directory.replica(this.node, place.id) : undefined
  }

  /** Returns every replica, including filling and unreachable ones. */
  peers(place: ShardPlace): readonly Peer[] {
    return place.record.replicas.map(record => this.#peer(record, place))
  }

  isReachable(node: string): boolean {
    return node === this.node || this.#directory.isConnected(node)
  }

  /**
   * Returns an error for each active replica that `readers` and `deciders` leave out. Such a replica may hold data that
   * no other replica has.
   */
  notAsked(place: ShardPlace): ReplicaError[] {
    const away = place.record.replicas.filter(({ node, filling }) => !filling && !this.isReachable(node))
    return away.map(({ node }) => new ReplicaError('unreachable', `no link to ${node} is open`))
  }

  #order(place: ShardPlace, forReading: boolean): Peer[] {
    const health = forReading ? this.#readHealth : this.#decisionHealth
    const trusted: Peer[] = []
    const suspects: Peer[] = []
    for (const record of place.record.replicas) {
      const local = record.node === this.node
      if (record.filling || (!local && !this.#directory.isConnected(record.node))) continue
      const peer = this.#peer(record, place)
      if (local && forReading && this.#directory.isCatchingUp(place.id)) suspects.unshift(peer)
      else if (local && forReading) trusted.unshift(peer)
      else if (health.isSuspect(record.node)) suspects.push(peer)
      else trusted.push(peer)
    }
    return suspects.length === 0 ? trusted : [...trusted, ...suspects]
  }

  #peer(record: ReplicaRecord, place: ShardPlace): Peer {
    return {
      node: record.node, local: record.node === this.node, active: !record.filling,
      replica: this.#directory.replica(record.node, place.id),
    }
  }
}
