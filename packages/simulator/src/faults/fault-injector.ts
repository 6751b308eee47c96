import type { FaultName } from '../plan/swarm-options.ts'
import type { Weather } from '../plan/weather.ts'
import { jumpClock } from './clock-faults.ts'
import { damageBlob, damageIndex, damageLog, damageRecord, loseBatches } from './damage-faults.ts'
import { failingDisk, failingReads, fullDisk, slowDisk } from './disk-faults.ts'
import type { Fault, FaultContext } from './fault.ts'
import { leave } from './membership-faults.ts'
import {
  crossDial, cutOneWay, dropConnections, isolateLeader, isolateOne, killConnections, lingerConnections, partition,
  slowLink,
} from './network-faults.ts'
import { crash, crashAll, loseDisk, pause, restartAll, stop } from './process-faults.ts'

const makers: Readonly<Record<FaultName, (context: FaultContext) => Fault | undefined>> = {
  'crash': crash, 'stop': stop, 'pause': pause, 'crash-all': crashAll, 'lose-disk': loseDisk,
  'partition': partition, 'isolate-one': isolateOne, 'isolate-leader': isolateLeader, 'one-way': cutOneWay,
  'slow-link': slowLink,
  'kill-connections': killConnections, 'drop-connections': dropConnections,
  'slow-disk': slowDisk, 'full-disk': fullDisk, 'failing-disk': failingDisk, 'failing-reads': failingReads,
  'jump-clock': jumpClock,
  'damage-record': damageRecord, 'damage-blob': damageBlob, 'damage-log': damageLog, 'lose-batches': loseBatches,
  'damage-index': damageIndex,
  'linger-connections': lingerConnections, 'cross-dial': crossDial, 'leave': leave, 'restart-all': restartAll,
}

/** Milliseconds in which nodes start that were down. */
const startMs = 5000

/** Starts faults, several of which may overlap, until it is stopped; then it ends all of them. */
export class FaultInjector {
  readonly #context: FaultContext
  readonly #weather: Weather
  readonly #active = new Set<Fault>()
  #stopped = false
  #drawn = 0

  constructor(context: FaultContext, weather: Weather) {
    this.#context = context
    this.#weather = weather
  }

  async run(): Promise<void> {
    const { dice, options, world } = this.#context
    if (options.faultPauseMs === Infinity) return
    for (;;) {
      await world.sleep(dice.wait(options.faultPauseMs))
      if (this.#stopped) return
      const name = dice.weighted(options.faults)
      if (name !== undefined) this.#inject(name)
      if (options.suspension?.afterFaults === this.#drawn) await this.#suspend(options.suspension.ms)
    }
  }

  /** Ends every fault, lets the nodes start, and suspends all machines. */
  async #suspend(ms: number): Promise<void> {
    const { schedule, world } = this.#context
    this.#drawn++
    if (!schedule.take('suspension')) return
    for (const fault of [...this.#active]) this.#end(fault)
    await world.sleep(startMs)
    if (this.#stopped) return
    world.say(`all machines are suspended for ${Math.round(ms)} ms`)
    let end = (): void => {}
    const fault: Fault = { begin: () => { end = world.suspend() }, end: () => end() }
    this.#active.add(fault)
    this.#weather.worsen('suspension')
    fault.begin()
    await world.sleep(ms)
    this.#end(fault)
  }

  /** Ends every fault. */
  stop(): void {
    this.#stopped = true
    for (const fault of [...this.#active]) this.#end(fault)
  }

  #inject(name: FaultName): void {
    const { dice, options, schedule, world } = this.#context
    const step = `fault${++this.#drawn}`
    const fault = makers[name](this.#context)
    const ms = dice.between(0, options.faultMsMax)
    if (fault === undefined || !schedule.take(step)) return
    world.say(`fault ${name} for ${Math.round(ms)} ms`)
    this.#active.add(fault)
    this.#weather.worsen(name)
    fault.begin()
    world.queue.schedule(ms, 'fault ends', () => this.#end(fault))
  }

  #end(fault: Fault): void {
    if (!this.#active.delete(fault)) return
    fault.end()
    this.#weather.improve()
  }
}

