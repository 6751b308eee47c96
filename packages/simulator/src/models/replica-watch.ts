/** Models of the replicas of some databases on all nodes of a world. */
import { compareRanges, shardKey } from '@sectional/core'
import type { ShardId, ShardReplica } from '@sectional/core'
import { ShardEngine } from '@sectional/server'
import type { MemoryDisk } from '@sectional/runtime'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import { BlobLeaseWatch } from './blob-lease-watch.ts'
import { KnownDigests } from './known-digests.ts'
import { ModelledReplica } from './modelled-replica.ts'
import { textsOf } from './replica-contents.ts'
import type { ReplicaContents } from './replica-contents.ts'

const blobStoreName = 'attachments'

interface Run { readonly node: SimulatedNode; readonly disk: MemoryDisk; readonly leases: BlobLeaseWatch }
interface Predecessor { readonly run: Run; readonly modelled: ModelledReplica }

export class ReplicaWatch {
  #world: World | undefined
  readonly #digests = new KnownDigests()
  /** The databases whose replicas are modelled, by incarnation, and whether they are partitioned. */
  readonly #databases = new Map<string, boolean>()
  /** The incarnations that exist while a database is created whose replicas will be modelled. */
  #existing: ReadonlySet<string> | undefined
  #nextPartitioned = false
  readonly #processes = new Map<string, Run>()
  readonly #modelled = new Map<ShardReplica, ModelledReplica>()
  /** The newest replica of each node and shard. */
  readonly #newest = new Map<string, Predecessor>()
  /** Number of records that were damaged by `damage` and not yet found missing, by node and shard. */
  readonly #damaged = new Map<string, number>()

  attach(world: World): void {
    this.#world = world
  }

  /**
   * Models the replicas of the database that is created next. Calls that nodes make before they answer that it was
   * created, such as those of anti-entropy, go through the models, too.
   * @param existing the incarnations of all databases that exist already
   */
  followNext(existing: ReadonlySet<string>, partitioned: boolean): void {
    this.#existing = existing
    this.#nextPartitioned = partitioned
  }

  /** Models the replicas of this database only, from now on. */
  follow(incarnation: string, partitioned: boolean): void {
    this.#existing = undefined
    this.#databases.set(incarnation, partitioned)
  }

  unfollow(incarnation: string): void {
    this.#databases.delete(incarnation)
  }

  /** Called for each start of a node. Returns the function that wraps its replicas. */
  observe(name: string): (shard: ShardId, replica: ShardReplica) => ShardReplica {
    // The process before has ended, also while this one has no replica yet.
    this.#processes.delete(name)
    let run: Run | undefined
    return (shard, replica) => {
      const partitioned = this.#partitioned(shard)
      if (partitioned === undefined || !(replica instanceof ShardEngine)) return replica
      if (run === undefined) {
        const node = this.#world!.nodes.find(each => each.name === name)!
        run = { node, disk: node.disk, leases: new BlobLeaseWatch(node.clock) }
        this.#processes.set(name, run)
      }
      let modelled = this.#modelled.get(replica)
      if (modelled === undefined) {
        modelled = this.#model(run, shard, replica, partitioned)
        this.#modelled.set(replica, modelled)
      }
      return modelled.shown
    }
  }

  /** Returns the replica that a node shows; undefined when it has shown none since its start. */
  on(node: SimulatedNode, shard: ShardId): ModelledReplica | undefined {
    const newest = this.#newest.get(placeOf(node, shard))
    return newest !== undefined && this.#isAlive(newest.run) ? newest.modelled : undefined
  }

  /** Notes that a record of a replica was damaged, so that its next incarnation may lack one document. */
  noteDamage(node: SimulatedNode, shard: ShardId): void {
    const place = placeOf(node, shard)
    this.#damaged.set(place, (this.#damaged.get(place) ?? 0) + 1)
  }

  /** Returns whether the database of the shard is partitioned; undefined when its replicas are not modelled. */
  #partitioned({ incarnation }: ShardId): boolean | undefined {
    const followed = this.#databases.get(incarnation)
    if (followed !== undefined || this.#existing === undefined || this.#existing.has(incarnation)) return followed
    return this.#nextPartitioned
  }

  #model(run: Run, shard: ShardId, engine: ShardEngine, partitioned: boolean): ModelledReplica {
    const world = this.#world!
    const { clock } = run.node
    const place = placeOf(run.node, shard)
    const name = `${run.node.name} ${shardKey(shard)}`
    const before = this.#newest.get(place)
    const alive = (): boolean => this.#isAlive(run)
    const fail = (rule: string, finding: string): void => { if (alive()) world.fail('safety', rule, finding) }
    const modelled: ModelledReplica = new ModelledReplica({
      engine, declines: () => engine.upkeep.catchingUp,
      compactedBytes: () => {
        const { externalBytes, replacedBytes } = engine.records.state()
        return replacedBytes < externalBytes ? 0 : replacedBytes
      },
      hasPeers: () => countsBesides(run.node, shard),
      name, clock, partitioned, alive, fail, store: engine.records.store, prefix: engine.records.keys.prefix,
      attemptOf: (id, revision) => engine.records.attempts.of(engine.records.keys.prefix, id, revision),
      digests: this.#digests,
      leases: run.leases, hasContent: hash => run.disk.blobs.blobs(blobStoreName).has(hash),
      afterEvent: work => { world.queue.schedule(0, 'replica model', work) },
      onFirstContents: contents => { void this.#compareWithBefore(place, name, before, run, contents, fail) },
    })
    this.#newest.set(place, { run, modelled })
    return modelled
  }

  /** A replica that was rebuilt or opened again has all that it had, but for a damaged record. */
  async #compareWithBefore(
    place: string, name: string, before: Predecessor | undefined, run: Run, contents: ReplicaContents,
    fail: (rule: string, finding: string) => void,
  ): Promise<void> {
    if (before === undefined || before.run.disk !== run.disk) return
    const expected = await before.modelled.confirmedTexts()
    if (expected === undefined) return
    const found = textsOf(contents)
    const lacking = [...expected].filter(([what, text]) => found.get(what) !== text)
    const concerned = new Set(lacking.map(([what]) => what.replace(/^purge \S+ of /, 'document ')))
    const tolerated = this.#damaged.get(place) ?? 0
    this.#damaged.delete(place)
    if (concerned.size <= tolerated) return
    const differences = lacking.slice(0, 3)
      .map(([what, text]) => `${what}: ${found.get(what) ?? 'nothing'}, before ${text}`)
    const those = `${concerned.size} documents that it had, of which ${tolerated} may be damaged`
    fail('kept-contents', `${name} lacks ${those}: ${differences.join('; ')}`)
  }

  #isAlive(run: Run): boolean {
    const { node } = run
    return this.#processes.get(node.name) === run && node.running && !node.stopping
  }
}

function placeOf(node: SimulatedNode, shard: ShardId): string {
  return `${node.name} ${shardKey(shard)}`
}

/** Returns whether another replica of the shard counts as far as the node knows. */
function countsBesides({ inside, name }: SimulatedNode, { incarnation, range }: ShardId): boolean {
  const databases = [...inside?.control.state()?.databases.values() ?? []]
  return databases.find(each => each.incarnation === incarnation)?.shards
    .find(each => compareRanges(each.range, range) === 0)?.replicas
    .some(({ filling, node }) => node !== name && !filling) ?? false
}
