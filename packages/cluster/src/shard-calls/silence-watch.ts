import { ReplicaError } from '@sectional/core'
import type { Timer } from '@sectional/runtime'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { Peer } from '../replicas/replica-access.ts'

/** The dependencies of a watch. */
export type WatchScope = Pick<CoordinatorScope, 'background' | 'decisionHealth' | 'options' | 'readHealth' | 'runtime'>

/**
 * Detects silent peers among those that owe an answer: stopped processes, and nodes whose connection was cut without
 * notice. A peer that has not answered for `silenceProbeMs` receives a probe, which is an empty request on the same
 * link and replica. When the probe is not answered within the same time either, the peer is silent. A node that is only
 * slow, because of its disk or its load, answers the probe and is not given up: asking a second decider has a cost.
 */
export class SilenceWatch {
  readonly #scope: WatchScope
  readonly #onSilent: (peer: Peer) => void
  readonly #waiting: Set<Peer>
  readonly #timers = new Set<Timer>()

  /**
   * @param peers the peers to watch; those on this node are ignored
   * @param onSilent called at most once for each peer, and never after `answered` or `cancel`
   */
  constructor(scope: WatchScope, peers: readonly Peer[], onSilent: (peer: Peer) => void) {
    this.#scope = scope
    this.#onSilent = onSilent
    this.#waiting = new Set(peers.filter(peer => !peer.local))
    const suspects = [...this.#waiting].filter(peer => scope.decisionHealth.isSuspect(peer.node))
    if (this.#waiting.size > suspects.length) {
      this.#after(() => { for (const peer of this.#waiting) if (!suspects.includes(peer)) this.#probe(peer) })
    }
    if (suspects.length > 0) scope.runtime.clock.setImmediate(() => { for (const peer of suspects) this.#begin(peer) })
  }

  /** A suspect was already given time to answer, so it is not probed in each call. */
  #begin(peer: Peer): void {
    const { decisionHealth, options: { silenceProbeMs } } = this.#scope
    if (!this.#waiting.has(peer)) return
    if (!decisionHealth.wasSilentWithin(peer.node, 2 * silenceProbeMs)) return this.#probe(peer)
    this.#waiting.delete(peer)
    this.#onSilent(peer)
  }

  /** Ends the watch of a peer that has answered. */
  answered(peer: Peer): void {
    if (this.#waiting.delete(peer) && this.#waiting.size === 0) this.cancel()
  }

  cancel(): void {
    this.#waiting.clear()
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
  }

  #probe(peer: Peer): void {
    const { background, options: { silenceProbeMs } } = this.#scope
    let heard = false
    this.#after(() => { if (!heard) this.#silent(peer) })
    const answered = (): void => {
      heard = true
      if (this.#waiting.has(peer)) this.#after(() => { if (this.#waiting.has(peer)) this.#probe(peer) })
    }
    // A failed probe is also an answer: the awaited call will report the failure.
    const probe = peer.replica.diffRevisions([], { timeoutMs: 2 * silenceProbeMs, requestId: 'silence-probe' })
    background.track(probe.then(answered, answered))
  }

  #silent(peer: Peer): void {
    if (!this.#waiting.delete(peer)) return
    const { readHealth, decisionHealth } = this.#scope
    for (const health of [readHealth, decisionHealth]) health.silent(peer.node)
    this.#onSilent(peer)
  }

  /**
   * Calls `act` after `silenceProbeMs`. The immediate lets answers that arrived during a long turn of the event loop be
   * handled first.
   */
  #after(act: () => void): Timer {
    const { clock } = this.#scope.runtime
    const timer = clock.setTimer(this.#scope.options.silenceProbeMs, () => {
      this.#timers.delete(timer)
      clock.setImmediate(act)
    })
    this.#timers.add(timer)
    return timer
  }
}

/**
 * Returns the peer's answer to one call.
 * @throws ReplicaError `timeout` as soon as the peer is silent
 */
export async function unlessSilent<T>(scope: WatchScope, peer: Peer, answer: Promise<T>): Promise<T> {
  scope.background.track(answer.then(() => {}, () => {}))
  let watch: SilenceWatch | undefined
  const silence = new Promise<never>((_, reject) => {
    watch = new SilenceWatch(scope, [peer], () => reject(new ReplicaError('timeout', `${peer.node} is silent`)))
  })
  try {
    return await Promise.race([answer, silence])
  } finally {
    watch?.cancel()
  }
}
