import type { AttachmentRecord, ShardReplica } from '@sectional/core'
import type { BlobStore, Runtime } from '@sectional/runtime'
import { everyNth, replicaBug, withChanges } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Milliseconds of writes that a disk that does not sync loses at a crash. */
const unsyncedMs = 3000
const callMs = 30_000

export const attachmentBugs: readonly PlantedBug[] = [
  {
    name: 'attachment-before-sync',
    does: 'content is confirmed before it is synced: a crash loses the content of the last seconds',
    caughtBy: ['blobs-kept', 'attachments-readable', 'durable-acknowledgement', 'converge'],
    plant: () => {
      const written = new Map<string, Map<string, number>>()
      return node => ({
        runtime: runtime => withBlobs(runtime, async blobs => {
          const times = written.get(node) ?? new Map<string, number>()
          written.set(node, times)
          const newestMs = Math.max(...times.values())
          for (const [hash, ms] of times) if (ms > newestMs - unsyncedMs) await blobs.delete(hash)
          times.clear()
          return withFinish(blobs, hash => times.set(hash, runtime.clock.monotonic()), () => times.clear())
        }),
      })
    },
  },
  {
    name: 'collected-while-named',
    does: 'content is removed when a revision is replaced, although this or other revisions still refer to it',
    caughtBy: ['blobs-kept', 'attachments-readable', 'internal-error'],
    plant: () => () => {
      let store: BlobStore | undefined
      return {
        runtime: runtime => withBlobs(runtime, async blobs => store = blobs),
        seams: { replica: (_, replica) => withChanges(replica, collecting(replica, () => store)) },
      }
    },
  },
  {
    name: 'content-never-collected',
    does: 'content that no revision refers to stays on the disk',
    caughtBy: ['blobs-kept'],
    plant: () => () => ({
      runtime: runtime => withBlobs(runtime, async blobs => withChanges(blobs, { delete: async () => {} })),
    }),
  },
  replicaBug({
    name: 'content-of-another',
    does: 'one read of content in three returns the content of the previous read',
    caughtBy: ['attachments-kept', 'attachments-readable'],
  }, replica => {
    const mistakes = everyNth(3)
    let before: string | undefined
    return {
      blobs: withChanges(replica.blobs, {
        readBlob: async function* ({ hash, span }, context) {
          const other = before
          before = hash
          const [found] = other === undefined ? [false] : await replica.blobs.hasBlobs([other], context)
          yield* replica.blobs.readBlob({ hash: found === true && mistakes() ? other! : hash, span }, context)
        },
      }),
    }
  }),
  replicaBug({
    name: 'forgotten-attachment',
    does: 'an edit that adds an attachment removes the last of the attachments that the document already had',
    caughtBy: ['attachments-kept', 'replicas-equal'],
  }, replica => ({
    updateDocuments: (request, context) => replica.updateDocuments({
      ...request,
      edits: request.edits.map(edit =>
        edit.attachments === undefined || edit.attachments.length < 2
          ? edit
          : { ...edit, attachments: edit.attachments.slice(0, -1) }),
    }, context),
  })),
  replicaBug({
    name: 'attachments-stay-behind',
    does: 'every fifth revision with attachments that another replica sends is stored without them',
    caughtBy: ['replicas-equal', 'attachments-kept', 'blobs-kept', 'converge'],
  }, replica => {
    const forgets = everyNth(5)
    return {
      storeRevisions: (request, context) => replica.storeRevisions({
        ...request,
        revisions: request.revisions.map(revision =>
          revision.attachments !== undefined && forgets() ? without(revision) : revision),
      }, context),
    }
  }),
]

function without<Whole extends { readonly attachments?: readonly AttachmentRecord[] }>(
  { attachments: _, ...rest }: Whole,
): Omit<Whole, 'attachments'> {
  return rest
}

function withBlobs(runtime: Runtime, change: (blobs: BlobStore) => Promise<BlobStore>): Runtime {
  return {
    ...runtime, blobs: withChanges(runtime.blobs, { open: async name => change(await runtime.blobs.open(name)) }),
  }
}

function withFinish(blobs: BlobStore, onFinished: (hash: string) => void, onClosed: () => void): BlobStore {
  return withChanges(blobs, {
    create: async () => {
      const writer = await blobs.create()
      return withChanges(writer, {
        finish: async announce => {
          const known = new Set<string>()
          for await (const hash of blobs.list()) known.add(hash)
          const finished = await writer.finish(announce)
          if (!known.has(finished.hash)) onFinished(finished.hash)
          return finished
        },
      })
    },
    close: () => {
      onClosed()
      return blobs.close()
    },
  })
}

function collecting(replica: ShardReplica, store: () => BlobStore | undefined): Partial<ShardReplica> {
  const context = { timeoutMs: callMs }
  const blobsOf = async (id: string): Promise<string[]> => (
    (await replica.openDocument({ id, body: true, tree: false }, context))?.attachments?.map(({ blob }) => blob) ?? []
  )
  const around = async <Reply>(ids: readonly string[], work: () => Promise<Reply>): Promise<Reply> => {
    const before = await Promise.all(ids.map(blobsOf))
    const reply = await work()
    const after = new Set((await Promise.all(ids.map(blobsOf))).flat())
    for (const blob of before.flat()) if (!after.has(blob)) await store()?.delete(blob)
    return reply
  }
  return {
    updateDocuments: (request, call) =>
      around(request.edits.map(({ id }) => id), () => replica.updateDocuments(request, call)),
    storeRevisions: (request, call) =>
      around(request.revisions.map(({ id }) => id), () => replica.storeRevisions(request, call)),
  }
}
