/** The answers of this node to its peers (`ControlPeer` of core), according to their proven identity. */
import { ReplicaError } from '@sectional/core'
import type {
  CallContext, ControlPeer, JoinReply, JoinRequest, NodeQuestion, PeerIdentity, PeerStatus, ProposeReply, RaftMessage,
} from '@sectional/core'
import { isAddress } from './commands.ts'

/** The operations that `controlPeer` protects. */
export interface ControlPeerHost {
  clusterId(): string | null
  status(): PeerStatus
  step(message: RaftMessage, from: PeerIdentity): void
  propose(command: unknown, context: CallContext): Promise<ProposeReply>
  admit(request: JoinRequest, from: PeerIdentity, context: CallContext): Promise<JoinReply>
  answer(question: NodeQuestion, argument: unknown): Promise<unknown>
  designChanged(incarnation: string): void
}

/**
 * A guest (a node without a cluster, or of another one) may only ask for the status and ask to join. All other calls
 * are for members.
 */
export function controlPeer(host: ControlPeerHost, node: string, from: PeerIdentity): ControlPeer {
  const membersOnly = (): void => {
    const own = host.clusterId()
    if (own === null || from.clusterId !== own) {
      throw new ReplicaError('protocol', `${from.node} is no member of this cluster`)
    }
  }
  return {
    sendRaft: message => {
      const own = host.clusterId()
      // Messages have no answer: one from a node that is not a member, or for another node, is ignored.
      if (own !== null && from.clusterId === own && message.from === from.node && message.to === node) {
        host.step(message, from)
      }
    },
    status: async () => host.status(),
    join: async (request, context) => {
      const own = host.clusterId()
      if (request.node !== from.node) {
        return { kind: 'refused', reason: `${from.node} asks in the name of ${request.node}` }
      }
      if (!isAddress(request.address)) {
        return { kind: 'refused', reason: `${request.address} is no address: write host:port` }
      }
      if (own === null) return { kind: 'try-later', leader: null }
      if (from.clusterId !== null && from.clusterId !== own) {
        return { kind: 'refused', reason: `${request.node} belongs to cluster ${from.clusterId}, this is ${own}` }
      }
      return host.admit(request, from, context)
    },
    propose: async (command, context) => {
      // A leader that has just lost its disk may still receive proposals. It must answer `not-leader`, not refuse.
      if (host.clusterId() === null) return { kind: 'not-leader', leader: null }
      membersOnly()
      return host.propose(command, context)
    },
    ask: async ({ question, argument }) => { membersOnly(); return host.answer(question, argument) },
    designChanged: async incarnation => { membersOnly(); host.designChanged(incarnation) },
  }
}
