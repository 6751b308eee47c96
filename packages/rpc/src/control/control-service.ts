import type { CallContext, ControlPeer } from '@sectional/core'
import type { Work } from '../link/calls-served.ts'
import { PayloadWriter } from '../schema/payload.ts'
import type { PayloadReader } from '../schema/payload.ts'
import type { WireMessage } from '../schema/schema.ts'
import type { Verb } from '../schema/verb.ts'
import * as verbs from './control-verbs.ts'

type Prepare = (message: WireMessage, payload: PayloadReader, peer: ControlPeer) => Work

/** How every control verb is served: the closed set. */
const servedVerbs: ReadonlyMap<string, Prepare> = new Map([
  once(verbs.status, (peer, _request, context) => peer.status(context)),
  once(verbs.join, (peer, request, context) => peer.join(request, context)),
  once(verbs.propose, (peer, command, context) => peer.propose(command, context)),
  once(verbs.ask, (peer, { question, argument }, context) => peer.ask(question, argument, context)),
])

/** What a node that was not admitted anywhere may call. */
export const guestVerbs: ReadonlySet<string> = new Set([verbs.status.name, verbs.join.name])

/**
 * Serves a control verb; undefined: no control verb.
 * @throws ProtocolError when the request is malformed
 */
export function prepareControlCall(call: WireMessage, payload: PayloadReader, peer: () => ControlPeer): Work | undefined {
  return servedVerbs.get(call.verb)?.(call[call.verb], payload, peer())
}

function once<Request, Reply>(
  verb: Verb<Request, Reply>, act: (peer: ControlPeer, request: Request, context: CallContext) => Promise<Reply>,
): readonly [string, Prepare] {
  return [verb.name, (message, payload, peer) => {
    const request = verb.decodeRequest(message, payload)
    payload.finish()
    return {
      kind: 'reply',
      run: async context => {
        const reply = await act(peer, request, context)
        const answer = new PayloadWriter()
        return { fields: { [verb.name]: verb.encodeReply(reply, answer) }, payload: answer }
      },
    }
  }]
}
