import { StorageError } from '@sectional/runtime'
import type { Store } from '@sectional/runtime'
import { everyNth, withChanges, withStores } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Milliseconds of writes that a disk that does not sync loses at a crash. */
const unsyncedMs = 200

interface Undo { readonly atMs: number; readonly before: readonly (readonly [string, Uint8Array | undefined])[] }

export const diskBugs: readonly PlantedBug[] = [
  {
    name: 'acknowledge-before-sync',
    does: 'a write is confirmed before it is synced: a crash loses the writes of the last moments',
    caughtBy: [
      'acknowledged-kept', 'kept-databases', 'replicas-equal', 'metadata-log', 'durable-acknowledgement', 'converge',
      'start', 'exception', 'fatal', 'consensus-rules', 'checkpoints-true',
    ],
    plant: () => {
      const unsynced = new Map<string, Undo[]>()
      return node => ({
        runtime: runtime => withStores(runtime, async (store, name) => {
          const opened = `${node}/${name}`
          await takeBack(store, unsynced.get(opened) ?? [])
          const undos: Undo[] = []
          unsynced.set(opened, undos)
          const now = () => runtime.clock.monotonic()
          return withChanges(store, {
            write: async fill => {
              const before: [string, Uint8Array | undefined][] = []
              const remember = (key: string): void => { before.push([key, store.getSync(key)]) }
              await store.write(batch => fill({
                put: (key, value) => { remember(key); batch.put(key, value) },
                putLatest: (key, value) => { remember(key); batch.putLatest(key, value) },
                delete: key => { remember(key); batch.delete(key) },
              }))
              while (undos[0] !== undefined && undos[0].atMs < now() - unsyncedMs) undos.shift()
              undos.push({ atMs: now(), before })
            },
            close: () => {
              undos.length = 0
              return store.close()
            },
          })
        }),
      })
    },
  },
  {
    name: 'lost-group-commit-failure',
    does: 'when a batch fails, it is still confirmed to its writers',
    caughtBy: [
      'acknowledged-kept', 'durable-acknowledgement', 'replicas-equal', 'metadata-log', 'converge', 'fatal', 'start',
      'consensus-rules', 'checkpoints-true',
    ],
    plant: () => () => ({
      runtime: runtime => withStores(runtime, store => withChanges(store, {
        failures: 0,
        write: fill => store.write(fill).catch((error: unknown) => {
          if (!(error instanceof StorageError) || !['full', 'io'].includes(error.code)) throw error
        }),
      })),
    }),
  },
  {
    name: 'leaked-timers',
    does: 'one cancelled timer in fifty stays active',
    caughtBy: ['nothing-leaks'],
    plant: () => () => {
      const leaks = everyNth(50)
      return {
        runtime: runtime => ({
          ...runtime,
          clock: withChanges(runtime.clock, {
            setTimer: (ms, callback) => {
              let cancelled = false
              const timer = runtime.clock.setTimer(ms, () => { if (!cancelled) callback() })
              return { cancel: () => { cancelled = true; if (!leaks()) timer.cancel() } }
            },
          }),
        }),
      }
    },
  },
]

async function takeBack(store: Store, undos: readonly Undo[]): Promise<void> {
  const newestMs = undos.at(-1)?.atMs ?? 0
  const lost = undos.filter(undo => undo.atMs >= newestMs - unsyncedMs).reverse()
  if (lost.length === 0) return
  await store.write(batch => {
    for (const { before } of lost) {
      for (const [key, value] of before) value === undefined ? batch.delete(key) : batch.put(key, value)
    }
  })
}
