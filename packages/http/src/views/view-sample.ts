import { designPrefix, viewTrialLimits, type ChangeRow, type IndexDefinition } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** The documents of a trial: those with the ids, or as many of the newest ones. */
export type ViewSample = { readonly ids: readonly string[] } | { readonly newest: number }

/** How many other changes, such as deletions, are read for each document of the sample at most. */
const othersPerDocument = 10

/**
 * Returns the documents of a sample that exist, in the order of their ids. It ends early when they have
 * `viewTrialLimits.bytes`. The newest documents are those of the shards that answer first. When the newest changes have
 * too few of them, the first documents by id are added.
 */
export async function sampleDocuments(
  { options }: IndexDefinition, sample: ViewSample, request: RequestContext, services: Services,
): Promise<readonly ChangeRow[]> {
  const found = new Map<string, ChangeRow>()
  const isWanted = (id: string): boolean =>
    !found.has(id) && (options['include_design'] === true || !id.startsWith(designPrefix))
  let bytes = 0
  const rows = 'ids' in sample
    ? named(sample.ids, request, services)
    : anyDocuments(sample.newest, isWanted, request, services)
  for await (const row of rows) {
    if (!isWanted(row.id) || row.leaves[0]?.deleted !== false || row.body === undefined) continue
    found.set(row.id, row)
    bytes += row.body.length
    if (bytes >= viewTrialLimits.bytes || 'newest' in sample && found.size === sample.newest) break
  }
  return [...found.values()].sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))
}

/** Reads the newest changes, and then the wanted documents in the order of their ids. */
async function* anyDocuments(
  count: number, isWanted: (id: string) => boolean, request: RequestContext, services: Services,
): AsyncGenerator<ChangeRow> {
  yield* newest(count * (1 + othersPerDocument), request, services)
  const { rows } = await services.coordinator.listDocuments(request.database, {
    descending: false, skip: 0, limit: null, body: false, leaves: false,
  }, request)
  for await (const page of rows) {
    for (const { id } of page) if (isWanted(id)) yield* named([id], request, services)
  }
}

/** Reads one document after the other, because each may be large. */
async function* named(
  ids: readonly string[], request: RequestContext, { coordinator }: Services,
): AsyncGenerator<ChangeRow> {
  for (const id of new Set(ids)) {
    const [opened] = await coordinator.openDocuments(request.database, [id], { body: true }, request)
    if (opened) yield { id, ...opened }
  }
}

/** Reads changes from the newest on, at most `limit`. */
async function* newest(
  limit: number, request: RequestContext, { coordinator }: Services,
): AsyncGenerator<ChangeRow> {
  const feed = await coordinator.openChanges(request.database, {
    since: { kind: 'start' }, descending: true, limit, body: true, follow: false,
  }, request)
  let left = limit
  try {
    for (let event = await feed.next(); event !== null; event = await feed.next()) {
      if (event.kind !== 'rows') continue
      for (const row of event.rows) {
        if (left-- === 0) return
        feed.take(event, row)
        yield row
      }
    }
  } finally {
    await feed.close()
  }
}
