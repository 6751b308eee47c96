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

/** How every control verb is served: the closed set. */
const servedVerbs: ReadonlyMap<string, Prepare> = mapVerbs<typeof controlVerbs, Prepare>(controlVerbs, {
  call: ({ name, invoke }) => {
    const codec: CallCodec<unknown, unknown> = controlCodecs[name]
    return (received, peer) => serveCall(name, codec, received, (request, context) => invoke(peer, request, context))
  },
})

/** What a node that was not admitted anywhere may call. */
export const guestVerbs: ReadonlySet<string> = new Set<keyof typeof controlVerbs>(['status', 'join'])

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
