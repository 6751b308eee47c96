import type { RaftMessage } from '@sectional/core'
import type { Log } from '@sectional/runtime'
import type { RpcLimits } from '../link/limits.ts'
import { encodeMessage } from '../link/calls-out.ts'
import type { PeerLink } from '../link/peer-link.ts'
import type { RpcMetrics } from '../link/rpc-metrics.ts'
import { PayloadWriter } from '../schema/payload.ts'
import { encodeRaft } from './raft-codec.ts'

/** The first version of the protocol whose peers accept pieces of snapshots and can read their content. */
const snapshotPiecesVersion = 2

/** Sends consensus messages. Messages may be lost, because consensus repeats them. */
export class RaftSender {
  readonly #limits: RpcLimits
  readonly #metrics: RpcMetrics
  readonly #log: Log

  constructor(limits: RpcLimits, metrics: RpcMetrics, log: Log) {
    this.#limits = limits
    this.#metrics = metrics
    this.#log = log
  }

  /**
   * Sends the message, or drops it when no link is open, when too many bytes wait to be sent on the link, or when the
   * message is too large or the peer's version cannot read it.
   *
   * @param link the best link to the receiver of the message; undefined: no link is open
   */
  send(link: PeerLink | undefined, message: RaftMessage): void {
    if (link === undefined || !link.takesOneWay) return this.#metrics.raftDropped()
    const peer = link.peer.node
    if (message.type === 'snapshot' && link.version < snapshotPiecesVersion) {
      const advice = 'a peer needs a snapshot of the metadata, which its older program cannot read: upgrade it'
      this.#log.warn({ peer }, advice)
      return this.#metrics.raftDropped()
    }
    const payload = new PayloadWriter()
    const outgoing = encodeMessage({ raft: encodeRaft(message, payload) }, payload)
    if (outgoing.bytes > this.#limits.maxMessageBytes) {
      const fields = { peer, type: message.type, bytes: outgoing.bytes, limitBytes: this.#limits.maxMessageBytes }
      this.#log.error(fields, 'a consensus message is over the limit and cannot be sent')
      return this.#metrics.raftDropped()
    }
    link.sendOneWay(outgoing)
  }
}
