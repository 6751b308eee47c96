import { controlVerbs, deriveVerbs } from '@sectional/core'
import type { ControlPeer, RaftMessage } from '@sectional/core'
import type { Caller } from '../link/caller.ts'
import type { WireCall } from '../link/wire-verb.ts'
import { controlCodecs } from './control-codecs.ts'

/** Calls the control verbs of another node, on one link or on the best link to that node. */
export const ControlCaller = deriveVerbs<typeof controlVerbs, Pick<Caller, 'call'>>(controlVerbs, {
  call: ({ name }) => {
    const verb: WireCall<unknown, unknown> = { ...controlCodecs[name], name, classOf: () => 'control' }
    return (caller, request, context) => caller.call(verb, null, request, context)
  },
})

/** The stub of another node's `ControlPeer`. */
export class ControlClient extends ControlCaller implements ControlPeer {
  readonly #sendRaft: (message: RaftMessage) => void

  constructor(caller: Caller, sendRaft: (message: RaftMessage) => void) {
    super(caller)
    this.#sendRaft = sendRaft
  }

  sendRaft(message: RaftMessage): void { this.#sendRaft(message) }
}
