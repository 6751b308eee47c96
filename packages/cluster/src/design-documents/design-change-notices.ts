import type { ControlPeer } from '@sectional/core'
import type { ControlPlane } from '../control/control-plane.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'

export interface DesignChangeNoticesParts {
  readonly control: Pick<ControlPlane, 'node' | 'connectedNodes'>
  readonly local: Pick<LocalReplicas, 'onCommit'>
  /** The links to the other nodes. */
  readonly peers: { control(node: string): Pick<ControlPeer, 'designChanged'> }
  /** Receives the incarnation of a database whose design documents a replica of this node has changed. */
  readonly onChange: (incarnation: string) => void
}

const noticeTimeoutMs = 2_000
/** Longest time for which the answer to a write of a design document waits for the other nodes. */
const announceTimeoutMs = 500
/** Notices that wait for their acknowledgement. Further ones are left out. */
const noticesMax = 1_000

/**
 * Tells all linked nodes when a replica of this node has committed a design document, also one that anti-entropy has
 * brought. A notice may be lost; nodes therefore also compare their caches with the replicas.
 */
export class DesignChangeNotices {
  readonly #parts: DesignChangeNoticesParts
  readonly #abort = new AbortController()
  /** `node incarnation` of each notice that is on its way -> whether there was another change since it was sent. */
  readonly #open = new Map<string, boolean>()
  readonly #running = new Set<Promise<void>>()
  #unsubscribe: () => void = () => {}

  constructor(parts: DesignChangeNoticesParts) {
    this.#parts = parts
  }

  start(): void {
    this.#unsubscribe = this.#parts.local.onCommit(({ incarnation }, _documents, designs) => {
      if (designs) this.#changed(incarnation)
    })
  }

  /** Resolves when no notice is on its way. */
  async stop(): Promise<void> {
    this.#unsubscribe()
    this.#abort.abort()
    await Promise.all(this.#running)
  }

  /**
   * Tells all linked nodes that this node has written a design document. Resolves when each of them has acknowledged
   * the notice, or after 500 ms. A client that then sends a write to another node finds the new functions there.
   */
  async announce(incarnation: string): Promise<void> {
    const { control, peers } = this.#parts
    const others = control.connectedNodes().filter(node => node !== control.node)
    await Promise.allSettled(others.map(node => peers.control(node).designChanged(
      incarnation, { timeoutMs: announceTimeoutMs, signal: this.#abort.signal, requestId: 'design-change' },
    )))
  }

  #changed(incarnation: string): void {
    const { control, onChange } = this.#parts
    onChange(incarnation)
    for (const node of control.connectedNodes()) {
      if (node === control.node) continue
      const key = `${node} ${incarnation}`
      if (this.#open.has(key)) this.#open.set(key, true)
      else if (this.#open.size < noticesMax) this.#start(node, incarnation, key)
    }
  }

  #start(node: string, incarnation: string, key: string): void {
    const running = this.#send(node, incarnation, key).finally(() => { this.#running.delete(running) })
    this.#running.add(running)
  }

  async #send(node: string, incarnation: string, key: string): Promise<void> {
    do {
      this.#open.set(key, false)
      try {
        await this.#parts.peers.control(node).designChanged(
          incarnation, { timeoutMs: noticeTimeoutMs, signal: this.#abort.signal, requestId: 'design-change' },
        )
      } catch {
        // The node compares its cache with the replicas some seconds later.
      }
    } while (this.#open.get(key) === true && !this.#abort.signal.aborted)
    this.#open.delete(key)
  }
}
