import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import { SeededRandom, StorageError } from '@sectional/runtime'
import { defaultRaftDriverOptions } from '../../src/consensus/raft-driver.ts'
import { ControlWorld } from './control-world.ts'

const names = ['n1', 'n2', 'n3', 'n4', 'n5']
const stepsPerRun = 60

/** The answers that clients received about one name. Operations on one name never overlap. */
interface Told { incarnation: string | null; unsure: boolean }

class ChaosRun {
  readonly world: ControlWorld
  readonly random: SeededRandom
  readonly told = new Map<string, Told>()
  readonly busy = new Set<string>()
  readonly work: Promise<void>[] = []
  readonly broken: unknown[] = []

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.world = new ControlWorld({
      seed, options: { raft: { ...defaultRaftDriverOptions, snapshotEntries: 15, trailingEntries: 4 } },
    })
  }

  pick<T>(items: readonly T[]): T | undefined { return items[Math.floor(this.random.fraction() * items.length)] }

  async step(): Promise<void> {
    const { world } = this
    const chance = this.random.fraction()
    const running = world.running()
    if (chance < 0.5) this.operate()
    else if (chance < 0.6) {
      const left = names.filter(() => this.random.fraction() < 0.4)
      world.hub.partition(left, names.filter(name => !left.includes(name)))
    } else if (chance < 0.7) world.hub.heal()
    else if (chance < 0.76 && running.length > 2) await world.crash(this.pick(running) ?? '')
    else if (chance < 0.9) {
      const down = this.pick(names.filter(name => !running.includes(name)))
      if (down !== undefined) await world.start(down)
    }
    await world.advance(this.random.fraction() * 1500)
  }

  operate(): void {
    const name = `db${Math.floor(this.random.fraction() * 6)}`
    const plane = this.world.plane(this.pick(this.world.running()) ?? '')
    if (this.busy.has(name)) return
    this.busy.add(name)
    const told = this.told.get(name) ?? { incarnation: null, unsure: false }
    this.told.set(name, told)
    const create = this.random.fraction() < 0.6
    const work = create
      ? plane.createDatabase(name, { q: 2, n: 3, partitioned: false }).then(record => {
        if (told.incarnation !== null && !told.unsure) throw new Error(`${name} was created twice`)
        told.incarnation = record.incarnation
        told.unsure = false
      })
      : plane.deleteDatabase(name).then(result => {
        told.incarnation = null
        // The deletion is only promised; it is applied when the log can be reached.
        if (result === 'accepted') told.unsure = true
      })
    this.work.push(work.catch((error: unknown) => {
      // A node that lost power during a write answers no client.
      if (error instanceof StorageError) told.unsure = true
      else if (!(error instanceof ApiError)) this.broken.push(error)
      else if (error.status === 503) told.unsure = true
    }).finally(() => { this.busy.delete(name) }))
  }

  async settle(): Promise<void> {
    const { world } = this
    world.hub.heal()
    for (const name of names) if (!world.running().includes(name)) await world.start(name)
    await world.during(Promise.all(this.work))
    await world.serving(names)
    await world.leader()
    await world.advance(15_000)
  }
}

describe('control planes under faults', () => {
  const seeds = Number.parseInt(process.env['CHAOS_SEEDS'] ?? '', 10) || 8
  const first = Number.parseInt(process.env['CHAOS_SEED'] ?? '', 10) || 1

  it(`agree in the end, and keep what they answered (${seeds} seeds)`, async function () {
    this.timeout(0)
    let sure = 0
    for (let seed = first; seed < first + seeds; seed += 1) {
      const run = new ChaosRun(seed)
      try {
        await run.world.form(names)
        for (let step = 0; step < stepsPerRun; step += 1) await run.step()
        await run.settle()
        expect([...run.world.fatal, ...run.broken]).to.deep.equal([])
        const states = names.map(name => run.world.plane(name).state())
        for (const state of states) expect(state).to.deep.equal(states[0])
        for (const [name, { incarnation, unsure }] of run.told) {
          if (!unsure) expect(states[0]?.databases.get(name)?.incarnation ?? null, name).to.equal(incarnation)
        }
        sure += [...run.told.values()].filter(told => !told.unsure).length
        await run.world.stopAll()
      } catch (error) {
        throw new Error(`seed ${seed} (replay: CHAOS_SEED=${seed} CHAOS_SEEDS=1): ${String(error)}`, { cause: error })
      }
    }
    expect(sure).to.be.greaterThan(0)
  })
})
