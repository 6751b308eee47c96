/** Injects faults that it draws from a seed, and removes each of them after some seconds. */
import { spawnSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import type { TestCluster } from '../src/test-cluster.ts'
import type { TestNode } from '../src/test-node.ts'
import type { SeededDraws } from './seeded-draws.ts'

/** Two faults can be active at the same time. */
const handsMax = 2
/** A calm period is long enough for reads that must be fresh. */
const calmMs = { from: 14_000, to: 20_000 }
const calmProbability = 0.06
const betweenMs = { from: 300, to: 4000 }
const faultMs = { from: 200, to: 7000 }
/** A node that shuts down within this time is in good order. */
const stopMsMax = 30_000
/** A node that listens answers within this time. */
const answerMsMax = 1000
/**
 * Bytes after which writes fail: at once, in a log that has begun, in a full one. They are the free space of a node's
 * own disk, or the largest size of a file.
 */
const fullDiskBytes = [0, 4096, 65_536, 1_048_576]

const weights = { kill: 4, 'kill-all': 1, restart: 2, pause: 4, isolate: 3, 'cut-one-way': 4, 'full-disk': 3 }
export type Fault = keyof typeof weights
export const faultKinds = Object.keys(weights) as readonly Fault[]

export class Nemesis {
  readonly #cluster: TestCluster
  readonly #draws: SeededDraws
  readonly #say: (line: string) => void
  /** Nodes that a fault holds, so that no other fault stops or starts them. */
  readonly #held = new Set<TestNode>()
  /** One-way paths that are cut, by fault. */
  readonly #cuts = new Map<symbol, readonly (readonly [number, number])[]>()
  readonly #kinds: Readonly<Partial<Record<Fault, number>>>
  #active = 0
  #calmSinceMs = performance.now()
  #calmUntilMs = 0
  /** Number of faults by kind. */
  readonly counts = new Map<string, number>()
  /** Violations that the nemesis itself has seen. */
  readonly problems: string[] = []

  /** @param without kinds of faults that are left out */
  constructor(
    cluster: TestCluster, draws: SeededDraws, say: (line: string) => void, without: readonly Fault[] = [],
  ) {
    this.#cluster = cluster
    this.#draws = draws
    this.#say = say
    const canLimit = cluster.nodes.every(({ disk }) => disk !== undefined)
      || spawnSync('prlimit', ['--version']).status === 0
    const left = faultKinds.filter(kind => !without.includes(kind) && (kind !== 'full-disk' || canLimit))
    this.#kinds = Object.fromEntries(left.map(kind => [kind, weights[kind]]))
    if (!canLimit) say('prlimit is not installed: disks do not become full in this run')
  }

  /** Time since which there has been no fault; Infinity while there is one. */
  get calmSinceMs(): number {
    return this.#active > 0 ? Infinity : this.#calmSinceMs
  }

  /** Injects faults until the time, and resolves when all of them have been removed. */
  async run(untilMs: number): Promise<void> {
    const watch = setInterval(() => this.#watchProcesses(), 200)
    try {
      await Promise.all(Array.from({ length: handsMax }, () => this.#hand(untilMs)))
    } finally {
      clearInterval(watch)
    }
    this.#cluster.heal()
  }

  async #hand(untilMs: number): Promise<void> {
    for (;;) {
      const { from, to } = betweenMs
      await pause(Math.max(this.#draws.integer(from, to), this.#calmUntilMs - performance.now()))
      if (performance.now() >= untilMs) return
      if (performance.now() < this.#calmUntilMs) continue
      if (this.#draws.happens(calmProbability)) {
        this.#calmUntilMs = performance.now() + this.#draws.integer(calmMs.from, calmMs.to)
        continue
      }
      const fault = this.#draws.weighted(this.#kinds as Record<Fault, number>)
      this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1)
      this.#active++
      try {
        await this.#inject(fault, Math.min(
          this.#draws.integer(faultMs.from, faultMs.to), Math.max(0, untilMs - performance.now()),
        ))
      } finally {
        this.#active--
        this.#calmSinceMs = performance.now()
      }
    }
  }

  async #inject(fault: Fault, ms: number): Promise<void> {
    if (fault === 'isolate' || fault === 'cut-one-way') return this.#cut(fault, ms)
    const free = this.#cluster.nodes.filter(node => !this.#held.has(node) && node.running)
    const nodes = this.#draws.several(free, fault === 'kill-all' ? free.length : this.#draws.happens(0.2) ? 2 : 1)
    const names = nodes.map(({ number }) => number).join(' and ')
    this.#say(`${fault} of node ${names || 'none'} for ${ms} ms`)
    for (const node of nodes) this.#held.add(node)
    try {
      await Promise.all(nodes.map(node => this.#afflict(node, fault, ms)))
    } finally {
      for (const node of nodes) this.#held.delete(node)
    }
  }

  async #afflict(node: TestNode, fault: Exclude<Fault, 'isolate' | 'cut-one-way'>, ms: number): Promise<void> {
    switch (fault) {
      case 'pause':
        node.pause()
        await pause(ms)
        return node.continue()
      case 'full-disk':
        // A node that is still starting would end with an error, as it should.
        if (!await isListening(node)) return
        node.limitDisk(this.#draws.pick(fullDiskBytes))
        await pause(ms)
        if (!node.running) return node.limitDisk(null)
        if (this.#draws.happens(0.7)) return node.limitDisk(null)
        await node.crash()
        node.limitDisk(null)
        return node.start()
      case 'restart':
        await this.#stop(node)
        break
      default:
        await node.crash()
    }
    await pause(ms)
    node.start()
  }

  async #stop(node: TestNode): Promise<void> {
    const stopped = node.stop().then(() => true)
    const timely = await Promise.race([stopped, pause(stopMsMax, false, { ref: false })])
    if (timely) return
    this.problems.push(`${node.name} has not shut down within ${stopMsMax / 1000} s of SIGTERM`)
    await node.crash()
  }

  async #cut(fault: 'isolate' | 'cut-one-way', ms: number): Promise<void> {
    const all = this.#cluster.nodes.map(({ number }) => number)
    const [victim, other] = this.#draws.several(all, 2) as [number, number]
    const others = all.filter(number => number !== victim)
    const outgoing = others.map(number => [victim, number] as const)
    const incoming = others.map(number => [number, victim] as const)
    const paths = fault === 'isolate'
      ? [...outgoing, ...incoming]
      : this.#draws.pick([[[victim, other] as const], [[victim, other] as const], outgoing, incoming])
    const key = Symbol(fault)
    this.#say(`${fault} for ${ms} ms: ${paths.map(([from, to]) => `${from} to ${to}`).join(', ')}`)
    this.#cuts.set(key, paths)
    this.#cluster.cut([...this.#cuts.values()].flat())
    await pause(ms)
    this.#cuts.delete(key)
    this.#cluster.cut([...this.#cuts.values()].flat())
  }

  /** A process that ends by itself is a violation. It is started again. */
  #watchProcesses(): void {
    for (const node of this.#cluster.nodes) {
      if (node.running || this.#held.has(node)) continue
      this.problems.push(`${node.name} has ended by itself`)
      this.#say(this.problems.at(-1)!)
      node.start()
    }
  }
}

function isListening(node: TestNode): Promise<boolean> {
  return node.http.send('GET', '/', { timeoutMs: answerMsMax }).then(() => true, () => false)
}
