import type { CallContext, ControlPeer, JoinReply, JoinRequest, NodeQuestion, PeerStatus, ProposeReply, RaftMessage } from '@sectional/core'
import type { Caller } from '../link/caller.ts'
import * as codecs from './control-codecs.ts'

/** The control side of another node. */
export class ControlClient implements ControlPeer {
  readonly #caller: Caller
  readonly #sendRaft: (message: RaftMessage) => void

  constructor(caller: Caller, sendRaft: (message: RaftMessage) => void) {
    this.#caller = caller
    this.#sendRaft = sendRaft
  }

  sendRaft(message: RaftMessage): void { this.#sendRaft(message) }

  status(context: CallContext): Promise<PeerStatus> {
    return this.#caller.call(codecs.status, null, undefined, context)
  }

  join(request: JoinRequest, context: CallContext): Promise<JoinReply> {
    return this.#caller.call(codecs.join, null, request, context)
  }

  propose(command: unknown, context: CallContext): Promise<ProposeReply> {
    return this.#caller.call(codecs.propose, null, command, context)
  }

  ask(question: NodeQuestion, argument: unknown, context: CallContext): Promise<unknown> {
    return this.#caller.call(codecs.ask, null, { question, argument }, context)
  }
}
