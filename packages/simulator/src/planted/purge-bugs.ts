import { everyNth, replicaBug } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

export const purgeBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'resurrected-after-purge',
    does: 'a late revision from a replica is treated as a new write of a client, so that it survives its purge',
    caughtBy: ['purged-stays', 'purged-everywhere', 'converge', 'replicas-equal'],
  }, replica => ({
    storeRevisions: (request, context) => replica.storeRevisions({ ...request, external: true }, context),
    scanPurges: async function* () { /* No replica learns of purges that it missed. */ },
  })),
  replicaBug({
    name: 'purge-without-ancestors',
    does: 'a purge names revisions without their ancestors, so that replicas that lack a revision keep its ancestors',
    caughtBy: ['purged-everywhere', 'purged-stays', 'converge', 'replicas-equal'],
  }, replica => ({
    purgeDocuments: ({ purges, ...request }, context) => replica.purgeDocuments({
      ...request,
      purges: purges.map(purge => ({
        ...purge, paths: purge.paths.map(({ start, ids }) => ({ start, ids: ids.slice(0, 1) })),
      })),
    }, context),
  })),
  replicaBug({
    name: 'purge-of-the-others',
    does: 'every other purge is confirmed, but carried out only by the other replicas',
    caughtBy: ['purged-stays', 'converge', 'replicas-equal', 'durable-acknowledgement'],
  }, replica => {
    const skips = everyNth(2)
    return {
      purgeDocuments: (request, context) => skips() ? Promise.resolve(request.purges.map(({ paths }) =>
        paths.map(({ start, ids }) => `${start}-${ids[0]}`))) : replica.purgeDocuments(request, context),
    }
  }),
  replicaBug({
    name: 'purge-takes-a-neighbour',
    does: 'a purge of one leaf removes the other leaves of its document too',
    caughtBy: ['acknowledged-kept'],
  }, replica => ({
    purgeDocuments: async ({ purges, ...request }, context) => {
      const widened = await Promise.all(purges.map(async purge => {
        const snapshot = await replica.openDocument({ id: purge.id, body: false, tree: true }, context)
        return { ...purge, paths: [...purge.paths, ...(snapshot?.tree ?? []).map(({ path }) => path)] }
      }))
      return replica.purgeDocuments({ ...request, purges: widened }, context)
    },
  })),
]
