/**
 * How a node becomes a member of a cluster, without any API call. `decideFormation` decides; `Membership` carries the
 * decision out. Nodes may start in any order and restart at any time.
 *
 * A node that has an identity on disk never forms a cluster. A fresh node asks every seed for its status:
 * - If some seed is a member, the node joins through it.
 * - If none is, only the first seed of the list may form a new cluster, with itself as the only voter, and only once a
 *   majority of the seeds (itself included) answer that they are fresh. The other nodes wait. A first seed that lost
 *   its disk while the others are only away therefore does not form a second cluster.
 *
 * Before it forms a cluster, the first seed waits for a grace period and until it has tried every seed. Members of its
 * former cluster dial it meanwhile, even if its seed list does not name them, and the handshake of each link tells the
 * cluster of the peer.
 */
import { ReplicaError } from '@sectional/core'
import type { JoinReply, JoinRequest, PeerNetwork, PeerStatus } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import type { Clock, Log, Random } from '@sectional/runtime'
import { majority } from '../quorum/majority.ts'

export interface FormationView {
  readonly address: string
  /** Addresses as configured; the node's own address may be among them. */
  readonly seeds: readonly string[]
  /** The answers of the peers. */
  readonly statuses: readonly PeerStatus[]
  /** Peers with an open link, which may not have answered yet; the link tells their cluster. */
  readonly linked?: readonly { readonly node: string; readonly clusterId: string | null }[]
  /** The condition that must still be met before a cluster may be formed, as a clause; null when there is none. */
  readonly grace?: string | null
}

export type FormationDecision =
  | { readonly kind: 'bootstrap' }
  /** Names of nodes to join through; nodes that know a leader come first. */
  | { readonly kind: 'join'; readonly through: readonly string[] }
  | { readonly kind: 'wait'; readonly reason: string }

/**
 * Returns whether this node, which has no identity on its disk, forms a cluster, joins one, or waits. It waits with the
 * reason while the seeds belong to different clusters, while another seed is the one to form the cluster, or while too
 * few seeds have answered.
 */
export function decideFormation(
  { address, seeds, statuses, linked = [], grace = null }: FormationView,
): FormationDecision {
  const silent = linked.filter(({ node }) => !statuses.some(status => status.node === node))
  const members = [...statuses, ...silent.map(({ node, clusterId }) =>
    ({ node, clusterId, leader: null }))].filter(({ clusterId }) =>
    clusterId !== null)
  const clusters = [...new Set(members.map(status => status.clusterId))]
  if (clusters.length > 1) {
    return {
      kind: 'wait', reason: `the seeds belong to different clusters (${clusters.join(', ')}): correct the seed list`,
    }
  }
  if (members.length > 0) {
    const through = [...members].sort((a, b) =>
      Number(a.leader === null) - Number(b.leader === null) || (a.node < b.node ? -1 : 1)).map(({ node }) => node)
    return { kind: 'join', through }
  }
  const first = seeds[0] ?? address
  if (first !== address) {
    return { kind: 'wait', reason: `no seed is a member of a cluster yet; ${first}, the first seed, forms one` }
  }
  const all = [...new Set([address, ...seeds])]
  const fresh = all.filter(seed => seed === address || statuses.some(status => status.address === seed && status.fresh))
  if (fresh.length >= majority(all.length)) {
    return grace === null
      ? { kind: 'bootstrap' }
      : { kind: 'wait', reason: `no member is known yet; a new cluster is formed ${grace}` }
  }
  return {
    kind: 'wait',
    reason: `${fresh.length} of ${all.length} seeds answer that they are fresh, `
      + `${majority(all.length)} are needed to form a cluster`,
  }
}

/**
 * Milliseconds after the start from which a node that still waits for a cluster logs a warning. Forming and joining
 * usually take less.
 */
const usualWaitMs = 20_000

export interface MembershipParts {
  readonly self: JoinRequest
  readonly seeds: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly network: PeerNetwork
  /** Milliseconds between two rounds at first. The pause doubles up to `maxIntervalMs` while nothing changes. */
  readonly intervalMs: number
  readonly maxIntervalMs: number
  readonly callTimeoutMs: number
  /** Milliseconds after its start during which a node without an identity forms no cluster. */
  readonly formationGraceMs: number
  /** The id of the cluster to which this node belongs according to its disk; null when it belongs to none. */
  readonly clusterId: () => string | null
  /**
   * Returns true when this member must announce itself again, because its record is out of date or because it receives
   * no messages from a leader.
   */
  readonly mustAnnounce: () => boolean
  /** Returns the leader of the metadata log as far as this node knows it. It is asked first. */
  readonly leader: () => string | null
  /** Called in each round while this node belongs to a cluster. */
  readonly onMemberRound: () => void
  readonly bootstrap: () => Promise<void>
  readonly adopt: (clusterId: string) => Promise<void>
  /** Called when the data directory is an older copy and must be given up. */
  readonly onOutdated: () => Promise<void>
  /** Called with the reason when members refuse to admit this node, and with null when a member has admitted it. */
  readonly onRefusal: (reason: string | null) => void
}

/** Returns an order of names that begins with the leader. */
function byLeader(leader: string | null): (a: string, b: string) => number {
  return (a, b) => Number(b === leader) - Number(a === leader) || (a < b ? -1 : 1)
}

export class Membership {
  readonly #parts: MembershipParts
  readonly #stopping = new AbortController()
  #wake = new AbortController()
  #loop: Promise<void> = Promise.resolve()
  #said = ''
  #startedMs = 0
  #graceEnd = 0

  constructor(parts: MembershipParts) {
    this.#parts = parts
  }

  start(): void {
    this.#startedMs = this.#parts.clock.monotonic()
    this.#graceEnd = this.#startedMs + this.#parts.formationGraceMs
    this.#loop = this.#run()
  }

  /** Ends the current pause. Call this after a link opened or the state changed. */
  changed(): void { this.#wake.abort() }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake.abort()
    await this.#loop
  }

  async #run(): Promise<void> {
    let wait = this.#parts.intervalMs
    while (!this.#stopping.signal.aborted) {
      this.#wake = new AbortController()
      try {
        await this.#round()
      } catch (error) {
        if (!this.#stopping.signal.aborted) this.#parts.log.warn({ err: error }, 'joining failed; trying again')
      }
      if (this.#stopping.signal.aborted) return
      // Half of the pause is random, so that nodes that start together do not ask at the same times.
      const graceMs = this.#graceEnd - this.#parts.clock.monotonic()
      const pause = wait / 2 + this.#parts.random.fraction() * wait / 2
      await sleep(this.#parts.clock, graceMs > 0 ? Math.min(pause, graceMs) : pause, this.#wake.signal)
      wait = this.#wake.signal.aborted ? this.#parts.intervalMs : Math.min(wait * 2, this.#parts.maxIntervalMs)
    }
  }

  async #round(): Promise<void> {
    const parts = this.#parts
    if (parts.clusterId() !== null) {
      parts.onMemberRound()
      if (!parts.mustAnnounce()) return
      const members = parts.network.connected().filter(peer => peer.clusterId === parts.clusterId())
        .map(peer => peer.node)
      return this.#join(members.sort(byLeader(parts.leader())))
    }
    const statuses = await this.#askStatus()
    const decision = decideFormation({
      address: parts.self.address, seeds: parts.seeds, statuses, linked: parts.network.connected(),
      grace: this.#grace(),
    })
    if (this.#stopping.signal.aborted) return
    if (decision.kind === 'bootstrap') return parts.bootstrap()
    if (decision.kind === 'join') return this.#join(decision.through)
    const waitedMs = parts.clock.monotonic() - this.#startedMs
    this.#say(decision.reason, waitedMs < usualWaitMs ? 'info' : 'warn')
  }

  #grace(): string | null {
    const { clock, formationGraceMs, network } = this.#parts
    if (clock.monotonic() < this.#graceEnd) {
      return `${formationGraceMs} ms after the start, so that members can tell of a cluster`
    }
    const untried = network.untried()
    return untried.length === 0 ? null : `when ${untried.join(', ')} was tried`
  }

  async #askStatus(): Promise<readonly PeerStatus[]> {
    const { network, callTimeoutMs } = this.#parts
    const context = { timeoutMs: callTimeoutMs, signal: this.#stopping.signal }
    const answers = await Promise.allSettled(
      network.connected().map(peer => network.control(peer.node).status(context)),
    )
    return answers.flatMap(answer => answer.status === 'fulfilled' ? [answer.value] : [])
  }

  async #join(through: readonly string[]): Promise<void> {
    for (const node of through) {
      if (this.#stopping.signal.aborted) return
      const reply = await this.#askToJoin(node)
      if (reply === null || reply.kind === 'try-later') continue
      if (reply.kind === 'outdated') return this.#parts.onOutdated()
      if (reply.kind === 'refused') {
        this.#say(`${node} refuses to admit this node: ${reply.reason}`)
        return this.#parts.onRefusal(reply.reason)
      }
      this.#parts.onRefusal(null)
      if (this.#parts.clusterId() === null) await this.#parts.adopt(reply.clusterId)
      return
    }
  }

  async #askToJoin(node: string): Promise<JoinReply | null> {
    const { network, callTimeoutMs, self } = this.#parts
    try {
      return await network.control(node).join(self, { timeoutMs: callTimeoutMs, signal: this.#stopping.signal })
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
      this.#say(`${node} did not answer the request to join: ${error.message}`)
      return null
    }
  }

  /** Logs a reason once, until the reason or the level changes. */
  #say(reason: string, level: 'info' | 'warn' = 'warn'): void {
    const said = `${level} ${reason}`
    if (said === this.#said) return
    this.#said = said
    this.#parts.log[level]({}, reason)
  }
}
