/** Bugs that single drills must find, which random runs would meet too rarely. */
import { replicaBug, withChanges, withStores } from '../../src/planted/planted-bug.ts'
import type { PlantedBug } from '../../src/planted/planted-bug.ts'

export const drillBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'parent-always-known',
    does: 'a replica that decides edits says that it knows the parent of each, so that conflicts count as certain',
    caughtBy: ['contested-edits'],
  }, replica => ({
    diffRevisions: async (asked, context) => {
      const diffs = await replica.diffRevisions(asked, context)
      return context.requestId?.startsWith('anti-entropy') ? diffs : diffs.map(diff => ({ ...diff, missing: [] }))
    },
  })),
  replicaBug({
    name: 'content-from-the-start',
    does: 'a replica that is asked for content from some position on sends it from the start on',
    caughtBy: ['broken-list'],
  }, replica => ({
    blobs: withChanges(replica.blobs, {
      readBlob: ({ hash, span }, context) =>
        replica.blobs.readBlob({ hash, span: span && { ...span, start: 0 } }, context),
    }),
  })),
  {
    name: 'replaced-entries-stay',
    does: 'entries of the metadata log that another leader has replaced stay on the disk',
    caughtBy: ['leader-change'],
    plant: () => () => ({
      runtime: runtime => withStores(runtime, (store, name) => name !== 'control' ? store : withChanges(store, {
        write: fill => store.write(batch => fill({
          ...batch,
          put: (key, value) => batch.put(key, value),
          delete: key => { if (!key.startsWith('l')) batch.delete(key) },
        })),
      })),
    }),
  },
]
