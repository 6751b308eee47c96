/** Bugs that only the rules for recorded histories show: answers, lists and local documents. */
import type {
  DocumentEdit, DocumentRow, EditOutcome, LocalDocument, ScanDocumentsRequest, ShardReplica, StoreRevisionsRequest,
} from '@sectional/core'
import { parseRevision } from '@sectional/core'
import { everyNth, replicaBug, withChanges } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

const staleMs = 120_000

export const historyBugs: readonly PlantedBug[] = [
  replicaBug({
    name: 'conflict-takes-effect',
    does: 'a replica stores one in three of the edits that it answers with a conflict, as a branch',
    caughtBy: ['conflicts-final', 'one-branch', 'one-success', 'known-revisions'],
  }, replica => {
    const stores = everyNth(3)
    return {
      updateDocuments: async (request, context) => {
        const reply = await replica.updateDocuments(request, context)
        if (reply.kind === 'declined') return reply
        const refused = request.edits.filter(({ parent }, index) =>
          reply.outcomes[index]!.kind === 'conflict' && parent !== null && stores())
        const revisions = refused.map(edit => ({ ...edit, path: madePath(edit) }))
        if (revisions.length > 0) {
          await replica.storeRevisions({ revisions, revsLimit: request.revsLimit, external: true }, context)
        }
        return reply
      },
    }
  }),
  {
    name: 'unstored-bulk-row',
    does: 'of one in three bulk requests, no replica stores the last edit, which is acknowledged nevertheless',
    caughtBy: ['converge', 'acknowledged-kept', 'durable-acknowledgement', 'fresh-reads', 'reads-agree'],
    plant: () => {
      const dropped = new Set<string>()
      const drops = everyNth(3)
      return () => ({ seams: { replica: (_, replica) => withoutRows(replica, dropped, drops) } })
    },
  },
  replicaBug({
    name: 'list-drops-a-row',
    does: 'one row in forty of the lists of documents is left out',
    caughtBy: ['fresh-reads', 'reads-agree'],
  }, replica => {
    const drops = everyNth(40)
    return { scanDocuments: (request, context) => changedPages(
      replica.scanDocuments(request, context), rows => rows.filter(() => !drops()),
    ) }
  }),
  replicaBug({
    name: 'row-of-another-document',
    does: 'in one page of lists in five, the first two rows show the revisions and bodies of each other',
    caughtBy: ['known-revisions', 'conflicts-final', 'reads-agree', 'fresh-reads'],
  }, replica => {
    const swaps = everyNth(5)
    return { scanDocuments: (request, context) => changedPages(
      replica.scanDocuments(request, context), ([first, second, ...rest]) =>
        first === undefined || second === undefined || !swaps()
          ? [first, second, ...rest].filter(row => row !== undefined)
          : [{ ...second, id: first.id }, { ...first, id: second.id }, ...rest],
    ) }
  }),
  replicaBug({
    name: 'stale-lists',
    does: 'a replica answers lists from a cache that writes do not update',
    caughtBy: ['fresh-reads', 'reads-agree'],
  }, (replica, { now }) => {
    const cached = new Map<string, { readonly atMs: number; readonly rows: readonly DocumentRow[] }>()
    async function* list(
      request: ScanDocumentsRequest, context: Parameters<ShardReplica['scanDocuments']>[1],
    ): AsyncGenerator<readonly DocumentRow[]> {
      const key = JSON.stringify(request)
      const known = cached.get(key)
      if (known !== undefined && now() - known.atMs < staleMs) return yield known.rows
      const rows: DocumentRow[] = []
      for await (const page of replica.scanDocuments(request, context)) rows.push(...page)
      cached.set(key, { atMs: now(), rows })
      yield rows
    }
    return { scanDocuments: list }
  }),
  {
    name: 'lost-local-write',
    does: 'no replica stores one in four writes of local documents, which are acknowledged nevertheless',
    caughtBy: ['local-documents'],
    plant: () => {
      const dropped = new Set<string>()
      const drops = everyNth(4)
      return () => ({ seams: { replica: (_, replica) => withoutLocals(replica, dropped, drops) } })
    },
  },
]

/** Returns the path of the revision that the edit makes. */
function madePath({ parent, revisionHash }: DocumentEdit): { readonly start: number; readonly ids: readonly string[] } {
  if (parent === null) return { start: 1, ids: [revisionHash] }
  const { generation, hash } = parseRevision(parent)
  return { start: generation + 1, ids: [revisionHash, hash] }
}

/** @param dropped the edits that no replica stores, which all replicas share */
function withoutRows(replica: ShardReplica, dropped: Set<string>, drops: () => boolean): ShardReplica {
  const key = (id: string, hash: string): string => `${id} ${hash}`
  return withChanges(replica, {
    updateDocuments: async (request, context) => {
      const last = request.edits.at(-1)
      const isAlone = request.edits.filter(({ id }) => id === last?.id).length === 1
      if (last === undefined || request.edits.length < 2 || !isAlone) return replica.updateDocuments(request, context)
      const before = await replica.openDocument({ id: last.id, body: false, tree: false }, context)
      const succeeds = last.parent === null
        ? before === null
        : before?.leaves.some(({ revision }) => revision === last.parent) === true
      if (!succeeds || !drops()) return replica.updateDocuments(request, context)
      const reply = await replica.updateDocuments({ ...request, edits: request.edits.slice(0, -1) }, context)
      if (reply.kind === 'declined') return reply
      dropped.add(key(last.id, last.revisionHash))
      const claimed: EditOutcome = { kind: 'updated', path: madePath(last) }
      return { ...reply, outcomes: [...reply.outcomes, claimed] }
    },
    storeRevisions: (request, context) => replica.storeRevisions({
      ...request, revisions: request.revisions.filter(({ id, path }) => !dropped.has(key(id, path.ids[0]!))),
    }, context),
  })
}

/** @param dropped the versions that no replica stores, which all replicas share */
function withoutLocals(replica: ShardReplica, dropped: Set<string>, drops: () => boolean): ShardReplica {
  const key = ({ id, stamp }: LocalDocument): string => `${id} ${stamp}`
  const kept = (request: StoreRevisionsRequest): StoreRevisionsRequest =>
    ({ ...request, locals: (request.locals ?? []).filter(document => !dropped.has(key(document))) })
  return withChanges(replica, {
    updateLocalDocument: async (request, context) => {
      if (!drops()) return replica.updateLocalDocument(request, context)
      const [before] = await replica.openLocalDocuments([request.id], context)
      const document = {
        id: request.id, revision: request.revision, body: request.body, stamp: (before?.stamp ?? 0) + 1,
      }
      dropped.add(key(document))
      return { kind: 'updated', document }
    },
    storeRevisions: (request, context) => replica.storeRevisions(kept(request), context),
  })
}

async function* changedPages(
  pages: AsyncIterable<readonly DocumentRow[]>, change: (rows: readonly DocumentRow[]) => readonly DocumentRow[],
): AsyncGenerator<readonly DocumentRow[]> {
  for await (const rows of pages) yield change(rows)
}
