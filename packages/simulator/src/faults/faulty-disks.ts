import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'

export interface DiskTrouble {
  /** Milliseconds added to each sync. */
  slowMs: number
  full: boolean
  /** Share of batches that fail. */
  failingWrites: number
  /** Share of reads that fail. */
  failingReads: number
  failingReadCode: 'io' | 'corrupt'
}

const clearInTwoChance = 0.5
const clearPauseMsMax = 3000
const keepUnsyncedChance = 0.5
const landFailedChance = 0.5
/** Batches of each store that a fault can lose. */
const journalBatches = 40

/** The disks of all nodes: how each misbehaves now. */
export class FaultyDisks {
  readonly #troubles = new Map<SimulatedNode, DiskTrouble>()
  /** Nodes whose present life has met an error of its disk. */
  readonly #hit = new Set<SimulatedNode>()
  readonly #dice: Dice
  readonly #syncDelayMs: { readonly min: number; readonly max: number }
  #lost = 0
  #damaged = 0
  readonly #damagedLogs = new Set<SimulatedNode>()
  readonly #leaving = new Set<SimulatedNode>()
  #damaging: Promise<void> = Promise.resolve()
  /** Of these one replica was damaged. */
  readonly damagedRanges = new Set<string>()
  readonly damagedBlobs = new Set<string>()

  constructor(world: World, dice: Dice, syncDelayMs: { readonly min: number; readonly max: number }) {
    this.#dice = dice
    this.#syncDelayMs = syncDelayMs
    for (const node of world.nodes) {
      this.#troubles.set(node, { slowMs: 0, full: false, failingWrites: 0, failingReads: 0, failingReadCode: 'io' })
      this.#attach(node)
    }
    world.onStarted.add(node => { if (!this.troubled(node)) this.#hit.delete(node) })
  }

  /** Disks that do not have what they once confirmed: empty ones in their place, or damage. */
  get lost(): number {
    return this.disksLost + this.#damaged
  }

  /**
   * Disks that were replaced by empty ones, or will be: when their node starts and meets its damaged metadata, or has
   * left.
   */
  get disksLost(): number {
    return this.#lost + this.#damagedLogs.size + this.#leaving.size
  }

  /** Records and blobs that were damaged. */
  get damagedDisks(): number {
    return this.#damaged
  }

  noteDamage(node: SimulatedNode): void {
    this.#damaged++
    this.#hit.add(node)
  }

  /** Damage that takes a look at the disk first. One after the other. */
  damageLater(work: () => Promise<void>): void {
    this.#damaging = this.#damaging.then(work)
  }

  damageLog(node: SimulatedNode): void {
    this.#damagedLogs.add(node)
  }

  /** The metadata on its disk is damaged. */
  hasDamagedLog(node: SimulatedNode): boolean {
    return this.#damagedLogs.has(node)
  }

  /** The node is to be removed, and drops what it holds as soon as it knows. */
  loseLater(node: SimulatedNode): void {
    this.#leaving.add(node)
  }

  lose(node: SimulatedNode): void {
    this.#lost++
    node.wipe()
    this.#damagedLogs.delete(node)
    this.#leaving.delete(node)
    this.#attach(node)
  }

  #attach(node: SimulatedNode): void {
    const dice = this.#dice
    const { min, max } = this.#syncDelayMs
    const trouble = this.of(node)
    const hit = <Code>(code: Code): Code => {
      this.#hit.add(node)
      return code
    }
    node.disk.keepJournal(journalBatches)
    const clears = dice.fork(`clears ${node.number} ${this.#lost}`)
    const suffixes = dice.fork(`suffixes ${node.number} ${this.#lost}`)
    node.disk.setFaults({
      clearPauseMs: () => clears.chance(clearInTwoChance) ? clears.between(0, clearPauseMsMax) : 0,
      syncDelayMs: () => dice.between(min, max) + dice.fraction() * trouble.slowMs,
      failWrite: () =>
        trouble.full ? hit('full')
          : trouble.failingWrites > 0 && dice.chance(trouble.failingWrites) ? hit('io')
          : undefined,
      failRecovery: () =>
        trouble.full ? hit('full')
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

  /** Its disk gives errors now. */
  troubled(node: SimulatedNode): boolean {
    const { full, failingWrites, failingReads } = this.of(node)
    return full || failingWrites > 0 || failingReads > 0
  }

  /** Its present life has met an error of its disk. */
  wasHit(node: SimulatedNode): boolean {
    return this.#hit.has(node)
  }
}
