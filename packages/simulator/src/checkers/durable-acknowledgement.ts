import type { ShardId, ShardReplica } from '@sectional/core'
import { activeReplicas, majority } from '@sectional/server'
import type { ControlPlaneNode } from '@sectional/server'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { databaseRecord, makesRevision, shardOf } from '../workload/history.ts'
import type { History, Operation } from '../workload/history.ts'
import { diskCall, isDamage, mayBeStemmed, openDisk, treeHas } from './disk-contents.ts'
import { pathHas, PurgeRecords } from './purge-records.ts'

/**
 * When a write or purge is acknowledged, it is synced on w disks, together with the content of its attachments. A
 * sample of the acknowledgements is checked, because each check opens w disks.
 */
export class DurableAcknowledgement {
  readonly #world: World
  /** A disk that was lost may be one of those that had the write. */
  readonly #disks: { readonly lost: number }
  readonly #dice: Dice
  readonly #share: number
  readonly #history: History

  constructor(world: World, history: History, disks: { readonly lost: number }, dice: Dice, share: number) {
    this.#world = world
    this.#disks = disks
    this.#dice = dice
    this.#share = share
    this.#history = history
  }

  acknowledged(operation: Operation, revision: string): void {
    if ((!makesRevision(operation) && operation.kind !== 'purge') || !this.#dice.chance(this.#share)) return
    const record = databaseRecord(this.#world.node(operation.node), operation.database)
    if (record === undefined || record.incarnation !== operation.incarnationBefore) return
    const shard = shardOf(record, operation.id)
    const active = activeReplicas(shard)
    // A replica that finished filling in the meantime counts from the next request on.
    const counted = Math.min(operation.activeBefore, active.length)
    const wanted = Math.min(operation.w ?? majority(counted), counted)
    const disks = this.#world.nodes.filter(node => active.some(replica => replica.node === node.name))
      .map(node => openDisk(node.disk))
    const { incarnation } = record
    void this.#count(disks, { incarnation, range: shard.range }, operation, revision).then(found => {
      if (found >= wanted - this.#disks.lost || (operation.kind !== 'purge' && this.#isPurged(operation, revision))
        || this.#mayBeDropped(operation.database, record.incarnation)) return
      const written = `#${operation.number} ${operation.database}/${operation.id} ${revision}`
      this.#world.fail(
        'safety', 'durable-acknowledgement', `${written} was acknowledged with ${found} of ${wanted} disks`,
      )
    })
  }

  /** Returns whether another client has already seen and purged the revision. */
  #isPurged({ database, id }: Operation, revision: string): boolean {
    return new PurgeRecords(this.#history.operations).mayHaveRemoved(database, id, revision)
  }

  /** Returns whether a node may have dropped its replica, because it knows of the database's deletion. */
  #mayBeDropped(database: string, incarnation: string): boolean {
    return this.#world.nodes.some(node => {
      const state = (node.inside?.control as ControlPlaneNode | undefined)?.appliedState()
      return state !== null && state !== undefined && state.databases.get(database)?.incarnation !== incarnation
        && state.index > 0
    })
  }

  async #count(
    disks: readonly ReturnType<typeof openDisk>[], shard: ShardId, { kind, id }: Operation, revision: string,
  ): Promise<number> {
    let found = 0
    for (const host of await Promise.all(disks)) {
      const replica = host.replica(shard)
      if (replica === undefined) continue
      try {
        if (await (kind === 'purge' ? hasPurge(replica, id, revision) : hasRevision(replica, id, revision))) found++
      } catch (error) {
        // The number of damaged disks is subtracted from the required number by `lost`.
        if (!isDamage(error)) throw error
      }
    }
    return found
  }
}

async function hasPurge(replica: ShardReplica, id: string, revision: string): Promise<boolean> {
  for await (const purges of replica.scanPurges(0, diskCall)) {
    if (purges.some(purge => purge.id === id && purge.paths.some(path => pathHas(path, revision)))) return true
  }
  return false
}

/** Returns whether the replica has the revision in its tree, and the content of its attachments. */
async function hasRevision(replica: ShardReplica, id: string, revision: string): Promise<boolean> {
  const snapshot = await replica.openDocument({ id, body: false, tree: true }, diskCall)
  if (snapshot?.tree === undefined || (!treeHas(snapshot.tree, revision) && !mayBeStemmed(snapshot.tree, revision))) {
    return false
  }
  const [[opened] = []] = await replica.openRevisions([{ id, revisions: [revision], latest: false }], diskCall)
  if (opened?.kind !== 'found' || opened.revision.attachments === undefined) return true
  const there = await replica.blobs.hasBlobs(opened.revision.attachments.map(({ blob }) => blob), diskCall)
  return there.every(Boolean)
}
