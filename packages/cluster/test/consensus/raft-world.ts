/** Several consensus cores with a network that loses, repeats and reorders messages, and disks that survive crashes. */
import { SeededRandom } from '@sectional/runtime'
import type { LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'
import type { ConfigurationChange } from '../../src/consensus/configuration.ts'
import { emptyConfiguration, encodeConfiguration } from '../../src/consensus/configuration.ts'
import { RaftCore } from '../../src/consensus/raft-core.ts'
import { defaultRaftOptions } from '../../src/consensus/raft-work.ts'
import type { HardState, RaftOptions, RaftSnapshot, RaftWork } from '../../src/consensus/raft-work.ts'
import { snapshotChecksum } from '../../src/consensus/snapshot-pieces.ts'
import { RaftLog } from '../../src/consensus/raft-log.ts'

interface Disk {
  hardState: HardState
  snapshot: RaftSnapshot
  base: { index: number; term: number }
  entries: LogEntry[]
}

export class WorldNode {
  readonly id: string
  core: RaftCore | null = null
  disk: Disk
  /** The state of the state machine: all applied commands, in order. */
  applied: string[] = []
  appliedIndex = 0
  /** Work that was taken from the core and is not on disk yet. */
  inFlight: RaftWork | null = null
  reads: { readonly id: number; readonly index: number | null }[] = []

  constructor(id: string) {
    this.id = id
    this.disk = {
      hardState: { term: 0, vote: null, commit: 0 }, snapshot: emptySnapshot, base: { index: 0, term: 0 }, entries: [],
    }
  }
}

const emptySnapshot: RaftSnapshot = {
  index: 0, term: 0, configuration: emptyConfiguration, state: new Uint8Array(0), checksum: 0,
}

export class RaftWorld {
  readonly nodes = new Map<string, WorldNode>()
  messages: RaftMessage[] = []
  readonly cuts = new Set<string>()
  readonly random: SeededRandom
  readonly #options: RaftOptions
  readonly #fraction: number | undefined
  readonly #asked: number[] = []
  readonly #leaders = new Map<number, string>()
  /** All entries that were ever applied, by index: `term:kind:payload`. */
  readonly #decided = new Map<number, string>()

  /** @param fraction draws the election timeouts; default: drawn from the seed */
  constructor(seed: number, options: Partial<RaftOptions> = {}, fraction?: number) {
    this.#fraction = fraction
    this.random = new SeededRandom(seed)
    this.#options = {
      ...defaultRaftOptions, electionTicks: 5, heartbeatTicks: 1, snapshotResendHeartbeats: 3, ...options,
    }
  }

  /** Forms a cluster that has these voters from its first entry on. */
  bootstrap(voters: readonly string[]): void {
    const payload = encodeConfiguration({ voters: [...voters], learners: [] })
    for (const id of voters) {
      const node = this.addFresh(id)
      node.disk = {
        ...node.disk, hardState: { term: 1, vote: null, commit: 1 },
        entries: [{ index: 1, term: 1, kind: 'configuration', payload }],
      }
      this.start(id)
    }
  }

  addFresh(id: string): WorldNode {
    const node = new WorldNode(id)
    this.nodes.set(id, node)
    return node
  }

  node(id: string): WorldNode {
    const node = this.nodes.get(id)
    if (!node) throw new Error(`no node ${id}`)
    return node
  }

  core(id: string): RaftCore {
    const { core } = this.node(id)
    if (!core) throw new Error(`${id} is down`)
    return core
  }

  start(id: string): void {
    const node = this.node(id)
    const { hardState, snapshot, base, entries } = node.disk
    const log = new RaftLog(base.index, base.term, entries)
    node.core = new RaftCore({
      id, hardState, snapshot, log, options: this.#options, random: () => this.#fraction ?? this.random.fraction(),
    })
    node.inFlight = null
    this.#restore(node, snapshot)
  }

  /** Crashes a node: everything that is not on disk is lost. */
  crash(id: string): void {
    const node = this.node(id)
    node.core = null
    node.inFlight = null
  }

  tick(id: string): void { this.node(id).core?.tick() }

  propose(id: string, text: string): string {
    const placed = this.core(id).propose(new TextEncoder().encode(text))
    return typeof placed === 'string' ? placed : `index ${placed.index} term ${placed.term}`
  }

  /** Begins a read. It must see every entry that any node had applied before. */
  read(id: string): void {
    this.#asked.push(Math.max(0, ...this.#decided.keys()))
    this.core(id).readIndex(this.#asked.length - 1)
  }

  change(id: string, change: ConfigurationChange): string {
    const placed = this.core(id).proposeConfiguration(change)
    return typeof placed === 'string' ? placed : `index ${placed.index} term ${placed.term}`
  }

  /** Takes work and sends the messages that may be sent before the write. Returns false when there was no work. */
  begin(id: string): boolean {
    const node = this.node(id)
    if (!node.core || node.inFlight || !node.core.hasWork()) return false
    node.inFlight = node.core.takeWork()
    this.#send(node.inFlight.messages)
    return true
  }

  /** Completes the write of the work in flight. */
  finish(id: string): RaftWork | null {
    const node = this.node(id)
    const work = node.inFlight
    if (!work || !node.core) return null
    node.inFlight = null
    if (work.persist) {
      this.#write(node, work)
      node.core.persisted(work)
    }
    if (work.restore) this.#restore(node, work.restore)
    for (const entry of work.committed) this.#apply(node, entry)
    node.reads.push(...work.reads)
    for (const { id: read, index } of work.reads) {
      const least = this.#asked[read] ?? 0
      if (index !== null && index < least) {
        throw new Error(`linearizable reads: ${id} answered with ${index} where ${least} was applied before`)
      }
    }
    this.#send(work.messagesAfterPersist)
    this.#checkLeaders()
    return work
  }

  work(id: string): RaftWork | null {
    this.begin(id)
    return this.finish(id)
  }

  compact(id: string, trailing: number): void {
    const node = this.node(id)
    const core = this.core(id)
    const index = node.appliedIndex
    const base = Math.max(core.log.baseIndex, index - trailing)
    const state = new TextEncoder().encode(JSON.stringify(node.applied))
    const snapshot: RaftSnapshot = {
      index, term: core.log.term(index) ?? 0, configuration: core.configurationAt(index), state,
      checksum: snapshotChecksum(state),
    }
    if (index <= core.snapshot.index) return
    node.disk.snapshot = snapshot
    node.disk.entries = node.disk.entries.filter(entry => entry.index > base)
    node.disk.base = { index: base, term: core.log.term(base) ?? 0 }
    core.compact(snapshot, base)
  }

  deliver(message: RaftMessage): void {
    if (this.cuts.has(`${message.from}>${message.to}`)) return
    this.nodes.get(message.to)?.core?.step(structuredClone(message))
  }

  /** Works and delivers messages in order until nothing is left to do. */
  settle(ids: readonly string[] = [...this.nodes.keys()]): void {
    // A snapshot in pieces of two bytes needs more than a thousand rounds.
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      let moved = false
      for (const id of ids) while (this.work(id)) moved = true
      const batch = this.messages
      this.messages = []
      for (const message of batch) { this.deliver(message); moved = true }
      if (!moved) return
    }
    throw new Error('the world does not come to rest')
  }

  leader(): string | null {
    const leading = [...this.nodes.values()].filter(node => node.core?.role === 'leader')
    return leading.sort((a, b) => (b.core?.term ?? 0) - (a.core?.term ?? 0))[0]?.id ?? null
  }

  partition(...groups: readonly (readonly string[])[]): void {
    this.cuts.clear()
    for (const left of groups) {
      for (const right of groups) {
        if (left !== right) for (const a of left) for (const b of right) this.cuts.add(`${a}>${b}`)
      }
    }
  }

  configuration(id: string): VotingConfiguration { return this.core(id).configuration }

  /** Checks log matching: entries of equal index and term are equal, and so are all entries before them. */
  checkLogs(): void {
    const cores = [...this.nodes.values()].flatMap(node => node.core ? [node.core] : [])
    for (const [at, a] of cores.entries()) {
      for (const b of cores.slice(at + 1)) {
        let agreed = false
        for (let index =
          Math.min(a.log.lastIndex, b.log.lastIndex); index > Math.max(a.log.baseIndex, b.log.baseIndex); index -= 1) {
          const [left] = a.log.slice(index, index)
          const [right] = b.log.slice(index, index)
          if (left?.term === right?.term) agreed = true
          if (agreed && describe(left) !== describe(right)) {
            throw new Error(
              `log matching: ${a.id} has ${describe(left)} and ${b.id} has ${describe(right)} at ${index}`,
            )
          }
        }
      }
    }
  }

  /** Checks leader completeness: a leader has every entry that was ever applied. */
  #checkLeaders(): void {
    for (const { id, core } of this.nodes.values()) {
      if (core?.role !== 'leader') continue
      const other = this.#leaders.get(core.term)
      if (other !== undefined && other !== id) {
        throw new Error(`election safety: ${other} and ${id} both lead term ${core.term}`)
      }
      if (other === undefined) {
        this.#leaders.set(core.term, id)
        for (const [index, entry] of this.#decided) {
          if (index <= core.log.baseIndex) continue
          const [held] = core.log.slice(index, index)
          if (describe(held) !== entry) {
            throw new Error(`leader completeness: ${id} leads term ${core.term} with ${describe(held)} at ${index}, `
              + `where ${entry} is decided`)
          }
        }
      }
    }
  }

  #send(messages: readonly RaftMessage[]): void { this.messages.push(...messages) }

  #write(node: WorldNode, work: RaftWork): void {
    const { persist } = work
    if (!persist) return
    const { disk } = node
    disk.hardState = persist.hardState
    if (persist.snapshot) {
      disk.snapshot = persist.snapshot
      disk.base = { index: persist.snapshot.index, term: persist.snapshot.term }
      disk.entries = []
    }
    const first = persist.entries[0]?.index ?? persist.lastIndex + 1
    disk.entries = [...disk.entries.filter(entry => entry.index < first), ...persist.entries]
  }

  #restore(node: WorldNode, snapshot: RaftSnapshot): void {
    node.applied = snapshot.state.length === 0 ? [] : JSON.parse(new TextDecoder().decode(snapshot.state)) as string[]
    node.appliedIndex = snapshot.index
  }

  /** Checks state machine safety: all nodes apply the same entry at an index. */
  #apply(node: WorldNode, entry: LogEntry): void {
    if (entry.index !== node.appliedIndex + 1) {
      throw new Error(`${node.id} applied ${entry.index} after ${node.appliedIndex}`)
    }
    const described = describe(entry)
    const decided = this.#decided.get(entry.index)
    if (decided !== undefined && decided !== described) {
      throw new Error(`state machine safety: ${node.id} applied ${described} where ${decided} is decided`)
    }
    this.#decided.set(entry.index, described)
    node.appliedIndex = entry.index
    if (entry.kind === 'command') node.applied.push(new TextDecoder().decode(entry.payload))
  }
}

export function describe(entry: LogEntry | undefined): string {
  if (!entry) return 'nothing'
  return `${entry.term}:${entry.kind}:${new TextDecoder().decode(entry.payload)}`
}
