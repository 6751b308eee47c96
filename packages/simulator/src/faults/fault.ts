import type { Schedule } from '../plan/schedule.ts'
import type { SwarmOptions } from '../plan/swarm-options.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { FaultyDisks } from './faulty-disks.ts'
import type { Supervisor } from './supervisor.ts'

/** A fault that lasts for a while. Call `end` once, at any time after `begin`. */
export interface Fault {
  begin(): void
  end(): void
}

export interface FaultContext {
  readonly world: World
  readonly dice: Dice
  readonly options: SwarmOptions
  readonly disks: FaultyDisks
  readonly supervisor: Supervisor
  readonly schedule: Schedule
}
