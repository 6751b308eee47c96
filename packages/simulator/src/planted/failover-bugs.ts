/** Bugs of nodes that start, of links that are busy, and of conflicts that are reviewed. */
import type { CallContext, PeerNetwork, ReplicaCheckpoint, ShardReplica } from '@sectional/core'
import type { Store } from '@sectional/runtime'
import { everyNth, replicaBug, withChanges, withStores } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Number of calls to one peer that may be in flight while `waits-take-calls` is planted. */
const callsMax = 6
/** The store of a node's metadata, and its record of starts (packages/cluster/src/control/control-store.ts). */
const controlStore = 'control'
const startsKey = 'b'

export const failoverBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'conflict-without-cause',
    does: 'one in four edits of a current revision gets a conflict, which no review takes back',
    caughtBy: ['founded-conflicts', 'contested-edits'],
  }, replica => {
    const refuses = everyNth(4)
    /** Edits that are refused once more, when the review lets the replica decide again. */
    const again = new Set<string>()
    return {
      updateDocuments: async (request, context) => {
        const [edit, ...others] = request.edits
        if (edit?.parent == null || others.length > 0) return replica.updateDocuments(request, context)
        const key = JSON.stringify([edit.id, edit.parent, edit.attempt])
        if (!again.delete(key)) {
          if (!refuses()) return replica.updateDocuments(request, context)
          again.add(key)
        }
        return { kind: 'decided', outcomes: [{ kind: 'conflict' }] }
      },
    }
  }),
  {
    name: 'serves-before-links',
    does: 'a node that starts serves requests before it has tried to reach its peers',
    caughtBy: ['fresh-after-start', 'known-after-start'],
    plant: () => () => ({ seams: { controlPlane: { startWaitMs: 0 } } }),
  },
  {
    name: 'seed-forms-at-once',
    does: 'the only host of a seed list forms a cluster before it has heard whether other nodes belong to one',
    caughtBy: ['metadata-log'],
    plant: () => () => ({ seams: { controlPlane: { formationGraceMs: 0 }, network: triedWhileNew } }),
  },
  {
    name: 'older-copy-unnoticed',
    does: 'a node on an older copy of its disk announces the newest start of its process as known, so that nobody '
      + 'notices the copy',
    caughtBy: ['older-disk', 'converge', 'fatal', 'metadata-log', 'consensus-rules'],
    plant: () => {
      const newest = new Map<string, Uint8Array>()
      return node => ({ runtime: runtime => withStores(runtime, (store, name) =>
        name === controlStore ? withNewestStart(store, node, newest) : store) })
    },
  },
  {
    name: 'silence-is-waited-out',
    does: 'a write waits for a replica that does not answer until the link to it is closed',
    caughtBy: ['writes-in-time'],
    plant: () => () => ({ seams: { coordinator: { silenceProbeMs: 100_000 } } }),
  },
  {
    name: 'waits-take-calls',
    does: 'calls that wait for a change occupy the same few places of a link as reads and writes',
    caughtBy: ['converge', 'start', 'changes-follow', 'fresh-reads'],
    plant: () => () => {
      const links = new Map<string, CallPlaces>()
      return {
        seams: {
          network: network => withChanges(network, {
            replica: (node, shard) => {
              const places = links.get(node) ?? new CallPlaces(callsMax)
              links.set(node, places)
              return limited(network.replica(node, shard), places)
            },
          }),
        },
      }
    },
  },
]

/** Returns the network of a node that does not wait for its first attempts to reach others while it has no cluster. */
function triedWhileNew(network: PeerNetwork): PeerNetwork {
  let isNew = true
  return withChanges(network, {
    setIdentity: identity => {
      isNew = identity.clusterId === null
      network.setIdentity(identity)
    },
    untried: () => isNew ? [] : network.untried(),
  })
}

/** @param newest the record of starts that each node wrote last, which is kept apart from its disk */
function withNewestStart(store: Store, node: string, newest: Map<string, Uint8Array>): Store {
  return withChanges(store, {
    write: fill => store.write(batch => fill({
      ...batch,
      put: (key, value) => {
        if (key === startsKey) newest.set(node, value)
        batch.put(key, value)
      },
      delete: key => batch.delete(key),
    })),
    getSync: key => {
      const stored = store.getSync(key)
      return key === startsKey && stored !== undefined ? newest.get(node) ?? stored : stored
    },
  })
}

/** Lets a number of calls run at the same time; the others wait for a place. */
class CallPlaces {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(callsMax: number) {
    this.#free = callsMax
  }

  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    else this.#free--
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}

function limited(replica: ShardReplica, places: CallPlaces): ShardReplica {
  return withChanges(replica, {
    waitForChange: (seen: ReplicaCheckpoint, context: CallContext) =>
      places.run(() => replica.waitForChange(seen, context)),
    openDocument: (request, context) => places.run(() => replica.openDocument(request, context)),
    storeRevisions: (request, context) => places.run(() => replica.storeRevisions(request, context)),
    updateDocuments: (request, context) => places.run(() => replica.updateDocuments(request, context)),
  })
}
