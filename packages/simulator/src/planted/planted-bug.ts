/**
 * Bugs that are put into nodes on purpose, to test that the checkers find them. Production code has no switches for
 * them: a bug is placed at an interface, in front of the disk, a replica, the metadata or the network.
 */
import type { RaftMessage, ShardReplica } from '@sectional/core'
import type { Clock, Runtime, Storage, Store } from '@sectional/runtime'
import type { Planting } from '../world/simulated-node.ts'
import { withChanges } from '../world/with-changes.ts'

export { withChanges }

export interface PlantedBug {
  readonly name: string
  /** What the nodes do wrong. */
  readonly does: string
  /** Names of the checkers that may find it first. */
  readonly caughtBy: readonly string[]
  /** The directed scenario that finds it, for bugs that random runs find only by luck. */
  readonly scenario?: string
  /** Called once for each run. The result is called for each start of each node. */
  readonly plant: () => (node: string) => Planting
}

/** Returns a runtime whose stores are changed when they are opened. */
export function withStores(runtime: Runtime, change: (store: Store, name: string) => Store | Promise<Store>): Runtime {
  const { storage } = runtime
  const open: Storage['open'] = async (name, options) => change(await storage.open(name, options), name)
  return { ...runtime, storage: withChanges(storage, { open }) }
}

/** Returns a planting that alters the outgoing messages of the metadata log. */
export function withRaftMessages(alter: (message: RaftMessage) => RaftMessage): Planting {
  return {
    seams: {
      network: network => withChanges(network, {
        control: node => {
          const peer = network.control(node)
          return withChanges(peer, { sendRaft: message => peer.sendRaft(alter(message)) })
        },
      }),
    },
  }
}

/** Returns a function that returns true for every `count`-th call. */
export function everyNth(count: number): () => boolean {
  let calls = 0
  return () => ++calls % count === 0
}

/** Defines a bug of each local replica. */
export function replicaBug(
  fields: Omit<PlantedBug, 'plant'>,
  change: (
    replica: ShardReplica,
    situation: { readonly node: string; readonly now: () => number; readonly wallClock: () => number },
  ) => Partial<ShardReplica>,
): PlantedBug {
  return {
    ...fields,
    plant: () => node => {
      const changed = new Map<ShardReplica, ShardReplica>()
      let clock: Clock | undefined
      const situation = { node, now: () => clock!.monotonic(), wallClock: () => clock!.now() }
      return {
        runtime: runtime => {
          clock = runtime.clock
          return runtime
        },
        seams: {
          replica: (_, replica) => {
            const known = changed.get(replica) ?? withChanges(replica, change(replica, situation))
            changed.set(replica, known)
            return known
          },
        },
      }
    },
  }
}
