import { expect } from 'chai'
import { SeededRandom } from '@sectional/runtime'
import type { ConfigurationChange } from '../../src/consensus/configuration.ts'
import { RaftWorld } from './raft-world.ts'

const everyone = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const stepsPerRun = 1500

interface Chances {
  readonly tick: number
  readonly deliver: number
  readonly disk: number
  readonly propose: number
  readonly crash: number
  readonly change: number
  readonly lose: number
  readonly repeat: number
  readonly cut: number
  readonly compact: number
}

/** Draws from the seed which faults occur, and how often. */
function drawChances(random: SeededRandom): Chances {
  const upTo = (most: number): number => random.fraction() < 0.3 ? 0 : random.fraction() * most
  return {
    tick: 0.1 + upTo(0.4), deliver: 0.4, disk: 0.4, propose: 0.1, crash: upTo(0.02), change: upTo(0.05),
    lose: upTo(0.3), repeat: upTo(0.2), cut: upTo(0.01), compact: upTo(0.02),
  }
}

function pick<T>(random: SeededRandom, items: readonly T[]): T | undefined {
  return items[Math.floor(random.fraction() * items.length)]
}

class RandomRun {
  readonly world: RaftWorld
  readonly random: SeededRandom
  readonly chances: Chances
  proposals = 0

  constructor(seed: number) {
    this.world = new RaftWorld(seed, {
      maxEntriesPerAppend: 1 + seed % 4, maxAppendsInFlight: 1 + seed % 5, snapshotPieceBytes: 1 + seed % 50,
    })
    this.random = this.world.random
    this.chances = drawChances(this.random)
    this.world.bootstrap(everyone.slice(0, 1 + Math.floor(this.random.fraction() * 5)))
  }

  happens(chance: number): boolean { return this.random.fraction() < chance }

  step(): void {
    const { world, random, chances } = this
    const id = pick(random, [...world.nodes.keys()]) ?? ''
    const node = world.node(id)
    if (this.happens(chances.tick)) world.tick(id)
    if (this.happens(chances.deliver)) this.#deliverOne()
    if (this.happens(chances.disk)) { if (node.inFlight) world.finish(id); else world.begin(id) }
    if (this.happens(chances.crash)) { if (node.core) world.crash(id); else world.start(id) }
    else if (!node.core && this.happens(0.2)) world.start(id)
    if (this.happens(chances.compact) && node.core && !node.inFlight) {
      world.compact(id, Math.floor(random.fraction() * 5))
    }
    if (this.happens(chances.cut)) this.#cut()
    const leader = world.leader()
    if (leader !== null && this.happens(chances.propose)) world.propose(leader, `command ${this.proposals += 1}`)
    if (node.core?.role === 'leader' && this.happens(0.05)) world.read(id)
    if (leader !== null && this.happens(chances.change)) this.#change(leader)
    // The oldest messages are lost, so that the queue stays short.
    if (world.messages.length > 400) world.messages.splice(0, 200)
  }

  /** Delivers one message. Any message may overtake any other. */
  #deliverOne(): void {
    const { world, random, chances } = this
    for (let count = 0; count < 3; count += 1) {
      const at = Math.floor(random.fraction() * world.messages.length)
      const [message] = world.messages.splice(at, 1)
      if (!message) return
      if (this.happens(chances.repeat)) world.messages.push(message)
      if (!this.happens(chances.lose)) world.deliver(message)
    }
  }

  #cut(): void {
    const ids = [...this.world.nodes.keys()]
    if (this.happens(0.5)) return this.world.cuts.clear()
    const left = ids.filter(() => this.happens(0.5))
    this.world.partition(left, ids.filter(id => !left.includes(id)))
  }

  #change(leader: string): void {
    const node = pick(this.random, everyone) ?? ''
    const kind = pick(this.random, ['add-learner', 'promote', 'remove'] as const) ?? 'promote'
    const change: ConfigurationChange = { kind, node }
    try {
      this.world.change(leader, change)
    } catch {
      return // the change makes no sense now: refused before the log
    }
    if (kind === 'add-learner' && !this.world.nodes.has(node)) { this.world.addFresh(node); this.world.start(node) }
  }

  /** Ends all faults. All nodes must then come to agree. */
  heal(): void {
    const { world } = this
    world.cuts.clear()
    for (const node of world.nodes.values()) if (!node.core) world.start(node.id)
    for (let round = 0; round < 60; round += 1) {
      for (const id of world.nodes.keys()) world.tick(id)
      world.settle()
    }
  }
}

describe('Raft under random schedules', () => {
  const seeds = Number.parseInt(process.env['RAFT_SEEDS'] ?? '', 10) || 150
  const first = Number.parseInt(process.env['RAFT_SEED'] ?? '', 10) || 1

  const properties = 'election safety, log matching, leader completeness and state machine safety'
  it(`keeps ${properties}, and answers reads with all that was decided (${seeds} seeds)`, function () {
    this.timeout(0)
    let decided = 0
    for (let seed = first; seed < first + seeds; seed += 1) {
      try {
        const run = new RandomRun(seed)
        for (let step = 0; step < stepsPerRun; step += 1) {
          run.step()
          if (step % 100 === 0) run.world.checkLogs()
        }
        run.heal()
        run.world.checkLogs()
        const leader = run.world.leader()
        if (leader === null) {
          const cores = [...run.world.nodes.values()].map(({ id, core }) => [
            id, core?.role, core?.term, core?.leader, core?.log.lastIndex, core?.log.lastTerm, core?.commit,
            core?.configuration,
          ])
          throw new Error(`no leader after the faults ended: ${JSON.stringify(cores)}`)
        }
        const { voters, learners } = run.world.configuration(leader)
        run.world.propose(leader, 'last')
        run.world.settle()
        const states = [...voters, ...learners].map(id => run.world.node(id).applied)
        for (const state of states) expect(state).to.deep.equal(states[0])
        expect(states[0]?.at(-1)).to.equal('last')
        decided += states[0]?.length ?? 0
      } catch (error) {
        throw new Error(`seed ${seed} (replay: RAFT_SEED=${seed} RAFT_SEEDS=1): ${String(error)}`, { cause: error })
      }
    }
    expect(decided).to.be.greaterThan(seeds * 5)
  })
})
