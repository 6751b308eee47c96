/** How this node answers its peers (core's `ControlPeer`), by who they have proven to be. */
import { ReplicaError } from '@sectional/core'
import type { CallContext, ControlPeer, JoinReply, JoinRequest, NodeQuestion, PeerIdentity, PeerStatus, ProposeReply, RaftMessage } from '@sectional/core'
import { isAddress } from './commands.ts'

/** What the node offers behind the door. */
export interface ControlPeerHost {
  clusterId(): string | null
  status(): PeerStatus
  step(message: RaftMessage, from: PeerIdentity): void
  propose(command: unknown, context: CallContext): Promise<ProposeReply>
  admit(request: JoinRequest, from: PeerIdentity, context: CallContext): Promise<JoinReply>
  answer(question: NodeQuestion, argument: unknown): Promise<unknown>
}

/** A guest (no cluster, or another one) may ask for the status and to join; everything else is for members. */
export function controlPeer(host: ControlPeerHost, node: string, from: PeerIdentity): ControlPeer {
  const membersOnly = (): void => {
    const own = host.clusterId()
    if (own === null || from.clusterId !== own) throw new ReplicaError('protocol', `${from.node} is no member of this cluster`)
  }
  return {
    sendRaft: message => {
      const own = host.clusterId()
      // One way: a message from a stranger, or for somebody else, is simply not heard.
      if (own !== null && from.clusterId === own && message.from === from.node && message.to === node) host.step(message, from)
    },
    status: async () => host.status(),
    join: async (request, context) => {
      const own = host.clusterId()
      if (request.node !== from.node) return { kind: 'refused', reason: `${from.node} asks in the name of ${request.node}` }
      if (!isAddress(request.address)) return { kind: 'refused', reason: `${request.address} is no address: write host:port` }
      if (own === null) return { kind: 'try-later', leader: null }
      if (from.clusterId !== null && from.clusterId !== own) return { kind: 'refused', reason: `${request.node} belongs to cluster ${from.clusterId}, this is ${own}` }
      return host.admit(request, from, context)
    },
    propose: async (command, context) => {
      // A leader that lost its disk is still asked for a moment: it must not pass for one that refuses.
      if (host.clusterId() === null) return { kind: 'not-leader', leader: null }
      membersOnly()
      return host.propose(command, context)
    },
    ask: async ({ question, argument }) => { membersOnly(); return host.answer(question, argument) },
  }
}
