import type { MemoryDisk } from '@sectional/runtime'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'

export interface DiskTrouble {
  /** Maximum milliseconds that are added to each sync. */
  slowMs: number
  full: boolean
  /** Probability that a batch fails. */
  failingWrites: number
  /** Probability that a read fails. */
  failingReads: number
  failingReadCode: 'io' | 'corrupt'
  /** Maximum milliseconds that a read takes. */
  slowReadsMs: number
  /** The only store whose writes are slow or fail; undefined: all. */
  store: string | undefined
}

const clearInStepsChance = 0.5
const clearPageKeysMax = 4
const keepUnsyncedChance = 0.5
const landFailedChance = 0.5
/** Batches of each store that are recorded so that a fault can remove them. */
const journalBatches = 40

/** The disks of all nodes and their current faults. */
export class FaultyDisks {
  readonly #troubles = new Map<SimulatedNode, DiskTrouble>()
  /** Nodes whose current process has received an error from its disk. */
  readonly #hit = new Set<SimulatedNode>()
  readonly #dice: Dice
  readonly #syncDelayMs: { readonly min: number; readonly max: number }
  readonly #world: World
  #lost = 0
  #lossMs = Infinity
  #damaged = 0
  /** Number of records of indexes that were damaged. */
  damagedIndexes = 0
  readonly #damagedLogs = new Set<SimulatedNode>()
  readonly #leaving = new Set<SimulatedNode>()
  #damaging: Promise<void> = Promise.resolve()
  /** Ranges of which one replica was damaged. */
  readonly damagedRanges = new Set<string>()
  readonly damagedBlobs = new Set<string>()

  constructor(world: World, dice: Dice, syncDelayMs: { readonly min: number; readonly max: number }) {
    this.#dice = dice
    this.#syncDelayMs = syncDelayMs
    this.#world = world
    for (const node of world.nodes) {
      this.#troubles.set(node, {
        slowMs: 0, full: false, failingWrites: 0, failingReads: 0, failingReadCode: 'io', slowReadsMs: 0,
        store: undefined,
      })
      this.#attach(node)
    }
    world.onStarted.add(node => { if (!this.troubled(node)) this.#hit.delete(node) })
  }

  /** Number of disks that lack something that they had confirmed: disks that were emptied, or damaged. */
  get lost(): number {
    return this.disksLost + this.#damaged
  }

  /** When the first of these disks was lost, in milliseconds; Infinity: none was. */
  get lossMs(): number {
    return this.#lossMs
  }

  /**
   * Number of disks that were emptied or will be: because their node will start with damaged metadata, or will have
   * left the cluster.
   */
  get disksLost(): number {
    return this.#lost + this.#damagedLogs.size + this.#leaving.size
  }

  /** Number of records and blobs that were damaged. */
  get damagedDisks(): number {
    return this.#damaged
  }

  noteDamage(node: SimulatedNode): void {
    this.#noteLoss()
    this.#damaged++
    this.#hit.add(node)
  }

  /** Schedules damage that must read the disk first. Such work runs sequentially. */
  damageLater(work: () => Promise<void>): void {
    this.#damaging = this.#damaging.then(work)
  }

  damageLog(node: SimulatedNode): void {
    this.#noteLoss()
    this.#damagedLogs.add(node)
  }

  /** Returns whether the metadata on the node's disk is damaged. */
  hasDamagedLog(node: SimulatedNode): boolean {
    return this.#damagedLogs.has(node)
  }

  /** Records that the node will be removed. It drops its data as soon as it learns that. */
  loseLater(node: SimulatedNode): void {
    this.#noteLoss()
    this.#leaving.add(node)
  }

  lose(node: SimulatedNode): void {
    this.#noteLoss()
    this.#lost++
    node.wipe()
    this.#damagedLogs.delete(node)
    this.#leaving.delete(node)
    this.#attach(node)
  }

  /** Replaces the node's disk by an older copy of it. */
  putBack(node: SimulatedNode, copy: MemoryDisk): void {
    this.#noteLoss()
    this.#lost++
    node.putBack(copy)
    this.#attach(node)
  }

  #noteLoss(): void {
    this.#lossMs = Math.min(this.#lossMs, this.#world.nowMs)
  }

  #attach(node: SimulatedNode): void {
    const dice = this.#dice
    const { min, max } = this.#syncDelayMs
    const trouble = this.of(node)
    const hit = <Code>(code: Code): Code => {
      this.#hit.add(node)
      return code
    }
    const concerns = (store: string): boolean => trouble.store === undefined || trouble.store === store
    const reads = dice.fork(`reads ${node.number} ${this.#lost}`)
    node.disk.keepJournal(journalBatches)
    const clears = dice.fork(`clears ${node.number} ${this.#lost}`)
    const suffixes = dice.fork(`suffixes ${node.number} ${this.#lost}`)
    node.disk.setFaults({
      clearPageKeys: () =>
        clears.chance(clearInStepsChance) ? clears.integer(1, clearPageKeysMax) : Number.POSITIVE_INFINITY,
      syncDelayMs: store =>
        dice.between(min, max) + dice.fraction() * (concerns(store) ? trouble.slowMs : 0),
      readDelayMs: () => trouble.slowReadsMs > 0 ? reads.fraction() * trouble.slowReadsMs : 0,
      failWrite: store =>
        !concerns(store) ? undefined
          : trouble.full ? hit('full')
          : trouble.failingWrites > 0 && dice.chance(trouble.failingWrites) ? hit('io')
          : undefined,
      failRecovery: store =>
        !concerns(store) ? undefined
          : trouble.full ? hit('full')
          : trouble.failingWrites > 0 && dice.chance(trouble.failingWrites) ? hit('io')
          : undefined,
      landFailed: () => dice.chance(landFailedChance),
      failRead: () =>
        trouble.failingReads > 0 && dice.chance(trouble.failingReads) ? hit(trouble.failingReadCode) : undefined,
      keepUnsynced: () => dice.chance(keepUnsyncedChance),
      loseNewest: (_, batches) => suffixes.integer(0, batches),
    })
  }

  of(node: SimulatedNode): DiskTrouble {
    return this.#troubles.get(node)!
  }

  /** Returns whether the node's disk causes errors now. */
  troubled(node: SimulatedNode): boolean {
    const { full, failingWrites, failingReads } = this.of(node)
    return full || failingWrites > 0 || failingReads > 0
  }

  /** Returns whether the node's current process has received an error from its disk. */
  wasHit(node: SimulatedNode): boolean {
    return this.#hit.has(node)
  }
}
