import { deriveVerbs, shardVerbs } from '@sectional/core'
import type { ShardReplica } from '@sectional/core'
import type { Verb } from './replica-world.ts'

/** Where the calls of a `WatchedReplica` go, and what sees them. */
export interface Watching {
  /** Returns the replica that gets the next call. It is asked after `onCall`. */
  readonly replica: () => ShardReplica
  /** Runs before each call. When it throws or rejects, the call rejects with the same error. */
  readonly onCall?: (verb: Verb, request: unknown) => void | Promise<void>
  /** Runs after each call of the shapes `call` and `upload`. */
  readonly onReply?: (reply: unknown) => void
}

/** Passes each call to a replica and shows it to the test. */
export const WatchedReplica = deriveVerbs<typeof shardVerbs, Watching>(shardVerbs, {
  call: verb => async (watching, request, context) => {
    await watching.onCall?.(verb.name, request)
    const reply = await verb.invoke(watching.replica(), request, context)
    watching.onReply?.(reply)
    return reply
  },
  upload: verb => async (watching, chunks, context) => {
    await watching.onCall?.(verb.name, undefined)
    const reply = await verb.invoke(watching.replica(), chunks, context)
    watching.onReply?.(reply)
    return reply
  },
  pages: verb => async function* (watching, request, context) {
    await watching.onCall?.(verb.name, request)
    yield* verb.invoke(watching.replica(), request, context)
  },
  download: verb => async function* (watching, request, context) {
    await watching.onCall?.(verb.name, request)
    yield* verb.invoke(watching.replica(), request, context)
  },
})
