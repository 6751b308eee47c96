import { controlVerbs, mapVerbs } from '@sectional/core'
import type { ControlPeer } from '@sectional/core'
import type { CallClass } from '../link/call-budget.ts'
import type { Work } from '../link/calls-served.ts'
import { serveCall } from '../link/served-work.ts'
import type { ReceivedRequest } from '../link/served-work.ts'
import type { CallCodec } from '../schema/codec.ts'
import type { PayloadReader } from '../schema/payload.ts'
import type { WireMessage } from '../schema/schema.ts'
import { controlCodecs } from './control-codecs.ts'

type Prepare = (received: ReceivedRequest, peer: ControlPeer) => Work

/** The functions that serve the control verbs, by name. A call of another verb is refused. */
const servedVerbs: ReadonlyMap<string, Prepare> = mapVerbs<typeof controlVerbs, Prepare>(controlVerbs, {
  call: ({ name, invoke }) => {
    const codec: CallCodec<unknown, unknown> = controlCodecs[name]
    return (received, peer) => serveCall(name, codec, received, (request, context) => invoke(peer, request, context))
  },
})

/** The verbs that a node may call which was not admitted to any cluster. */
export const guestVerbs: ReadonlySet<string> = new Set<keyof typeof controlVerbs>(['status', 'join'])

/** Returns the class of a control verb's call; undefined: the call is not of a control verb. */
export function controlCallClass(call: WireMessage): CallClass | undefined {
  return servedVerbs.has(call.verb) ? 'control' : undefined
}

/**
 * Serves a call of a control verb. Returns undefined when the call is not of a control verb.
 *
 * @throws ProtocolError when the request is malformed
 */
export function prepareControlCall(
  call: WireMessage, payload: PayloadReader, peer: () => ControlPeer,
): Work | undefined {
  return servedVerbs.get(call.verb)?.({ message: call[call.verb], payload }, peer())
}
