import type { CallContext, ControlPeer } from '@sectional/core'
import type { CallClass } from '../link/call-budget.ts'
import type { Work } from '../link/calls-served.ts'
import { serveCall } from '../link/served-work.ts'
import type { ReceivedRequest } from '../link/served-work.ts'
import type { WireCall } from '../link/wire-verb.ts'
import type { PayloadReader } from '../schema/payload.ts'
import type { WireMessage } from '../schema/schema.ts'
import * as codecs from './control-codecs.ts'

type Prepare = (received: ReceivedRequest, peer: ControlPeer) => Work

/** How every control verb is served: the closed set. */
const servedVerbs: ReadonlyMap<string, Prepare> = new Map([
  served(codecs.status, (peer, _request, context) => peer.status(context)),
  served(codecs.join, (peer, request, context) => peer.join(request, context)),
  served(codecs.propose, (peer, command, context) => peer.propose(command, context)),
  served(codecs.ask, (peer, { question, argument }, context) => peer.ask(question, argument, context)),
])

/** What a node that was not admitted anywhere may call. */
export const guestVerbs: ReadonlySet<string> = new Set([codecs.status.name, codecs.join.name])

/** The budget that a control verb's call counts in; undefined: no control verb. */
export function controlCallClass(call: WireMessage): CallClass | undefined {
  return servedVerbs.has(call.verb) ? 'control' : undefined
}

/**
 * Serves a control verb; undefined: no control verb.
 * @throws ProtocolError when the request is malformed
 */
export function prepareControlCall(
  call: WireMessage, payload: PayloadReader, peer: () => ControlPeer,
): Work | undefined {
  return servedVerbs.get(call.verb)?.({ message: call[call.verb], payload }, peer())
}

function served<Request, Reply>(
  verb: WireCall<Request, Reply>, act: (peer: ControlPeer, request: Request, context: CallContext) => Promise<Reply>,
): readonly [string, Prepare] {
  const { name } = verb
  return [name, (received, peer) => serveCall(name, verb, received, (request, context) => act(peer, request, context))]
}
