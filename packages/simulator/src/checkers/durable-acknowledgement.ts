import { activeReplicas, majority } from '@sectional/server'
import type { ControlPlaneNode } from '@sectional/server'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { databaseRecord, makesRevision, shardOf } from '../workload/history.ts'
import type { History, Operation } from '../workload/history.ts'
import { PurgeRecords } from './purge-records.ts'
import { mayBeStemmed, openDisk, treeHas } from './disk-contents.ts'

const call = { timeoutMs: 3_600_000 }

/** At the moment a write is acknowledged it is synced on w disks. Looks at a sample, since each look opens w disks. */
export class DurableAcknowledgement {
  readonly #world: World
  /** A lost disk may be one that has confirmed. */
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
    if (!makesRevision(operation) || !this.#dice.chance(this.#share)) return
    const record = databaseRecord(this.#world.node(operation.node), operation.database)
    if (record === undefined || record.incarnation !== operation.incarnationBefore) return
    const shard = shardOf(record, operation.id)
    const active = activeReplicas(shard)
    // A replica that was filled meanwhile counts from the next request on.
    const counted = Math.min(operation.activeBefore, active.length)
    const wanted = Math.min(operation.w ?? majority(counted), counted)
    const disks = this.#world.nodes.filter(node => active.some(replica => replica.node === node.name)).map(node => openDisk(node.disk))
    void this.#count(disks, { incarnation: record.incarnation, range: shard.range }, operation.id, revision).then(found => {
      if (found >= wanted - this.#disks.lost || this.#isPurged(operation, revision) || this.#mayBeDropped(operation.database, record.incarnation)) return
      this.#world.fail('safety', 'durable-acknowledgement', `#${operation.number} ${operation.database}/${operation.id} ${revision} was acknowledged with ${found} of ${wanted} disks`)
    })
  }

  /** Another client has seen it already. */
  #isPurged({ database, id }: Operation, revision: string): boolean {
    return new PurgeRecords(this.#history.operations).mayHaveRemoved(database, id, revision)
  }

  /** A node that knows of the database's deletion has dropped its replica, whatever was on it. */
  #mayBeDropped(database: string, incarnation: string): boolean {
    return this.#world.nodes.some(node => {
      const state = (node.inside?.control as ControlPlaneNode | undefined)?.appliedState()
      return state !== null && state !== undefined && state.databases.get(database)?.incarnation !== incarnation && state.index > 0
    })
  }

  async #count(disks: readonly ReturnType<typeof openDisk>[], shard: Parameters<Awaited<ReturnType<typeof openDisk>>['replica']>[0], id: string, revision: string): Promise<number> {
    let found = 0
    for (const host of await Promise.all(disks)) {
      const snapshot = await host.replica(shard)?.openDocument({ id, body: false, tree: true }, call)
      if (snapshot?.tree !== undefined && (treeHas(snapshot.tree, revision) || mayBeStemmed(snapshot.tree, revision))) found++
    }
    return found
  }
}
