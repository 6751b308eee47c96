/**
 * Watches the messages of the metadata log, and compares them with the disks and with each other. A node promises only
 * what is on its disk, and a leader decides only what a majority has on theirs (Ongaro & Ousterhout 2014).
 */
import type { LogEntry, PeerHandlers, PeerIdentity, PeerNetwork, ProposeReply, RaftMessage } from '@sectional/core'
import type { MemoryDisk } from '@sectional/runtime'
import { controlStoreName, DamagedControlStoreError, majority, RaftStorage } from '@sectional/server'
import type { ControlPlaneNode } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { withChanges } from '../world/with-changes.ts'
import type { World } from '../world/world.ts'
import { LeaderRounds } from './leader-rounds.ts'

type Of<Type extends RaftMessage['type']> = RaftMessage & { readonly type: Type }

/** What one leader has sent in one term. */
interface Leadership {
  readonly leader: string
  /** The commit index with which the leader began. */
  readonly firstCommit: number
  commit: number
  readonly rounds: LeaderRounds
  /** The index of the first entry of the term; undefined until it was sent. */
  began?: number
  /** The newest two sets of voters: a message may have been queued before the last change of membership. */
  voters: readonly (readonly string[])[]
}

/** What is known of a disk. A machine that gets another disk begins anew. */
interface DiskRecord {
  term: number
  /** The log up to this index was found on the disk. */
  found: number
  acknowledged: number
  /** The newest request for a vote of each candidate. */
  readonly requests: Map<string, Of<'vote-request'>>
}

/** Entries on a disk that are compared with the one that was acknowledged before them. */
const followingMax = 4

export class ConsensusRules {
  readonly #world: World
  readonly #disks: { readonly disksLost: number }
  readonly #records = new WeakMap<MemoryDisk, DiskRecord>()
  readonly #terms = new Map<number, Leadership>()
  /** Terms of the entries that leaders have sent, by index; of each index the newest. */
  readonly #entries = new Map<number, LogEntry>()
  /** The terms of committed entries, and the terms whose leaders committed them. */
  readonly #committed = new Map<number, { readonly term: number; readonly in: number }>()

  /** @param disks a disk that was lost, or replaced by an older copy, has forgotten what it promised */
  constructor(world: World, disks: { readonly disksLost: number }) {
    this.#world = world
    this.#disks = disks
    world.observers.add({ network: (node, network) => this.#watched(node, network) })
  }

  #watched(node: SimulatedNode, network: PeerNetwork): PeerNetwork {
    return withChanges(network, {
      control: to => {
        const peer = network.control(to)
        return withChanges(peer, {
          sendRaft: message => {
            this.#sent(node, message)
            peer.sendRaft(message)
          },
        })
      },
      start: handlers => network.start(this.#watchedHandlers(node, handlers)),
    })
  }

  #watchedHandlers(node: SimulatedNode, handlers: PeerHandlers): PeerHandlers {
    return withChanges(handlers, {
      control: (from: PeerIdentity) => {
        const own = handlers.control(from)
        return withChanges(own, {
          sendRaft: message => {
            this.#received(node, message)
            own.sendRaft(message)
          },
          propose: async (command, context) => {
            const led = this.#ledBy(node.name)
            const mark = led?.rounds.sent
            const reply = await own.propose(command, context)
            if (led !== undefined && mark !== undefined && isRead(command)) this.#answered(node, led, mark, reply)
            return reply
          },
        })
      },
    })
  }

  #fail(text: string): void {
    this.#world.fail('safety', 'consensus-rules', text)
  }

  /** Fails unless a lost disk may be the reason: it had entries and votes that others rely on. */
  #failUnlessLost(text: string): void {
    if (this.#disks.disksLost === 0) this.#fail(text)
  }

  #record({ disk }: SimulatedNode): DiskRecord {
    const known = this.#records.get(disk) ?? { term: 0, found: 0, acknowledged: 0, requests: new Map() }
    this.#records.set(disk, known)
    return known
  }

  // What a node sends

  #sent(node: SimulatedNode, message: RaftMessage): void {
    const record = this.#record(node)
    if (!('preVote' in message && message.preVote)) {
      if (message.term < record.term) {
        this.#fail(`${node.name} sent ${message.type} of term ${message.term} after one of term ${record.term}`)
      }
      record.term = message.term
    }
    switch (message.type) {
      case 'vote-request': return this.#requested(node, message)
      case 'vote-reply': return this.#voted(node, message, record)
      case 'append-reply': return this.#acknowledged(node, message, record)
      case 'append': return this.#appended(node, message)
      case 'snapshot':
      case 'snapshot-reply': return this.#world.moments.transfers(node, message.to)
      default:
    }
  }

  #requested(node: SimulatedNode, message: Of<'vote-request'>): void {
    const hardState = message.preVote ? undefined : storedLog(node)?.hardState
    if (hardState === undefined || hasVoted(hardState, message.term, node.name)) return
    this.#fail(`${node.name} asks for votes in term ${message.term}, and its disk has ${JSON.stringify(hardState)}`)
  }

  #voted(node: SimulatedNode, message: Of<'vote-reply'>, record: DiskRecord): void {
    const view = message.granted ? storedLog(node) : undefined
    if (view === undefined) return
    if (!message.preVote && !hasVoted(view.hardState, message.term, message.to)) {
      this.#fail(`${node.name} votes for ${message.to} in term ${message.term}, and its disk has `
        + JSON.stringify(view.hardState))
    }
    const request = record.requests.get(message.to)
    if (message.preVote || request === undefined || request.term !== message.term) return
    // Entries of the leader that the vote has made may arrive before the vote is sent.
    let { lastIndex } = view
    while (lastIndex > view.snapshotIndex && (view.term(lastIndex) ?? 0) >= message.term) lastIndex--
    const lastTerm = view.term(lastIndex) ?? 0
    if (request.lastTerm > lastTerm || (request.lastTerm === lastTerm && request.lastIndex >= lastIndex)) return
    if (view.hardState.term > message.term) return
    this.#fail(`${node.name}, whose log ends at ${lastIndex} of term ${lastTerm}, votes for ${message.to}, whose log `
      + `ends at ${request.lastIndex} of term ${request.lastTerm}`)
  }

  #acknowledged(node: SimulatedNode, message: Of<'append-reply'>, record: DiskRecord): void {
    const { matchIndex, success, term, to } = message
    if (success && matchIndex > record.acknowledged) {
      record.acknowledged = matchIndex
      this.#world.moments.acknowledged(node)
    }
    if (!success || matchIndex <= record.found) return
    const view = storedLog(node)
    if (view === undefined) return
    if (view.hardState.term > term) return
    if (view.hardState.term < term || (matchIndex > view.snapshotIndex && view.term(matchIndex) === undefined)) {
      this.#fail(`${node.name} acknowledges ${to} of term ${term} the metadata log up to ${matchIndex}, and its disk `
        + `has it up to ${view.lastIndex} in term ${view.hardState.term}`)
    }
    this.#checkOrder(node, view, matchIndex)
    // Entries that are not committed may be replaced.
    record.found = Math.min(matchIndex, view.hardState.commit)
  }

  /** An entry that was replaced is gone, together with all entries that followed it. */
  #checkOrder(node: SimulatedNode, view: StoredLog, from: number): void {
    for (let index = from + 1; index <= from + followingMax; index++) {
      const [before, after] = [view.term(from), view.term(index)]
      if (before === undefined || after === undefined || after >= before) continue
      return this.#fail(`${node.name} has entry ${index} of term ${after} on its disk, behind entry ${from} of term `
        + before)
    }
  }

  #appended(node: SimulatedNode, message: Of<'append'>): void {
    const known = this.#terms.get(message.term)
    const voters = (node.inside?.control as ControlPlaneNode | undefined)?.votingConfiguration()?.voters
    if (known === undefined) {
      this.#terms.set(message.term, {
        leader: node.name, firstCommit: message.commit, commit: message.commit, rounds: new LeaderRounds(node.name),
        voters: voters === undefined ? [] : [voters],
      })
    } else if (known.leader !== node.name) {
      this.#failUnlessLost(`${known.leader} and ${node.name} lead in term ${message.term}`)
    }
    if (known === undefined) this.#world.moments.leads(node)
    const led = this.#terms.get(message.term)!
    if (voters !== undefined && String(voters) !== String(led.voters[0])) {
      led.voters = [voters, ...led.voters].slice(0, 2)
    }
    for (const entry of message.entries) {
      this.#checkAdmission(node, entry, voters ?? [])
      this.#noteEntry(node, message.term, entry)
      this.#checkMembership(node, led, message, entry)
    }
    if (led.leader !== node.name) return
    if (message.commit > led.commit) this.#committedBy(node, led, message)
    const silent = led.rounds.sending(message.round, led.voters, node.clock.awakeMs)
    // A failing disk delays messages, so that a leader may send its last ones after it has stepped down.
    if (silent !== undefined && node.inside?.control.leader() === node.name) {
      this.#fail(`${node.name} goes on leading term ${message.term} although no majority of `
        + `${led.voters[0]!.join(', ')} has answered for ${silent} rounds`)
    }
  }

  /** A leader changes the voters after it has committed an entry of its own term. */
  #checkMembership(leader: SimulatedNode, led: Leadership, { commit, term }: Of<'append'>, entry: LogEntry): void {
    if (entry.term !== term) return
    if (entry.kind === 'noop') led.began = entry.index
    if (entry.kind !== 'configuration' || led.began === undefined || commit >= led.began) return
    this.#fail(`${leader.name} changes the voters in entry ${entry.index} of term ${term}, of which it has committed `
      + 'nothing')
  }

  /** A node with an empty disk has forgotten its votes, so it is admitted when it is no voter any more. */
  #checkAdmission(leader: SimulatedNode, { index, kind, payload, term }: LogEntry, voters: readonly string[]): void {
    const isKnown = (this.#entries.get(index)?.term ?? -1) >= term
    if (isKnown || kind !== 'command') return
    const { fresh, node, type } = JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>
    if (type !== 'admit-node' || fresh !== true || node === leader.name || !voters.includes(String(node))) return
    this.#fail(`${leader.name} admits ${node}, which has an empty disk, in entry ${index}, and ${node} is a voter`)
  }

  /** Entries of one index and term are equal, and a leader has all entries that earlier leaders have committed. */
  #noteEntry(node: SimulatedNode, inTerm: number, entry: LogEntry): void {
    const known = this.#entries.get(entry.index)
    if (known?.term === entry.term
      && (known.kind !== entry.kind || Buffer.compare(known.payload, entry.payload) !== 0)) {
      this.#failUnlessLost(
        `${node.name} sent another entry ${entry.index} of term ${entry.term} than was sent before`,
      )
    }
    if (known === undefined || known.term < entry.term) this.#entries.set(entry.index, entry)
    const committed = this.#committed.get(entry.index)
    if (committed === undefined || committed.term === entry.term || inTerm < committed.in) return
    this.#failUnlessLost(`${node.name} leads with entry ${entry.index} of term ${entry.term}, and the one of term `
      + `${committed.term} was committed`)
  }

  #committedBy(node: SimulatedNode, led: Leadership, { commit, term }: Of<'append'>): void {
    led.commit = commit
    const own = storedLog(node)?.term(commit)
    const entryTerm = own ?? this.#entries.get(commit)?.term
    if (entryTerm === undefined) return
    this.#committed.set(commit, { term: entryTerm, in: term })
    if (commit > led.firstCommit && entryTerm < term) {
      this.#fail(`${led.leader}, which leads term ${term}, has counted copies of entry ${commit}, which is of term `
        + entryTerm)
    }
    const holders = new Set(this.#world.nodes.filter(each => {
      const view = storedLog(each)
      return view === undefined || view.snapshotIndex >= commit || view.term(commit) === entryTerm
    }).map(({ name }) => name))
    const isHeld = (voters: readonly string[]): boolean =>
      voters.filter(voter => holders.has(voter)).length >= majority(voters.length)
    if (led.voters.length === 0 || led.voters.some(isHeld)) return
    this.#failUnlessLost(`${led.leader} has committed entry ${commit} of the metadata log, which only `
      + `${[...holders].join(', ')} of ${led.voters[0]!.join(', ')} have on their disks`)
  }

  // What a node receives

  #received(node: SimulatedNode, message: RaftMessage): void {
    if (message.type === 'vote-request') this.#record(node).requests.set(message.from, message)
    if (message.type !== 'append-reply' && message.type !== 'snapshot-reply') return
    const led = this.#terms.get(message.term)
    if (led?.leader === node.name) led.rounds.answered(message.from, message.round, node.clock.awakeMs)
  }

  #ledBy(name: string): Leadership | undefined {
    const newest = Math.max(-1, ...[...this.#terms].filter(([, { leader }]) => leader === name).map(([term]) => term))
    return this.#terms.get(newest)
  }

  /** A leader answers a read after a majority has answered a message that was sent after the read arrived. */
  #answered(node: SimulatedNode, led: Leadership, mark: number, reply: ProposeReply): void {
    if (reply.kind !== 'applied' || led.voters.length === 0 || led !== this.#ledBy(node.name)) return
    if (led.voters.some(voters => led.rounds.confirmedSince(mark, voters))) return
    this.#fail(`${node.name} answered a read of the metadata with index ${reply.index} before a majority of `
      + `${led.voters[0]!.join(', ')} had confirmed that it leads`)
  }
}

type StoredLog = ReturnType<typeof RaftStorage.view>

/** Returns the log on the disk of a machine; undefined when a fault has damaged it, so that nothing is known. */
function storedLog({ disk }: SimulatedNode): StoredLog | undefined {
  try {
    return RaftStorage.view(key => disk.value(controlStoreName, key))
  } catch (error) {
    if (error instanceof DamagedControlStoreError) return undefined
    throw error
  }
}

/** Returns whether the node's disk has a snapshot of the metadata. */
export function hasSnapshot(node: SimulatedNode | undefined): boolean {
  return node !== undefined && (storedLog(node)?.snapshotIndex ?? 0) > 0
}

/** Returns whether the disk has the vote, or a later term, in which the vote cannot be given again. */
function hasVoted({ term, vote }: StoredLog['hardState'], inTerm: number, candidate: string): boolean {
  return term > inTerm || (term === inTerm && vote === candidate)
}

function isRead(command: unknown): boolean {
  return (command as { readonly type?: unknown } | null)?.type === 'read-index'
}
