import { designPrefix, viewTrialLimits, type ChangeRow, type IndexDefinition } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** The documents of a trial: those with the ids, or as many of the newest ones. */
export type ViewSample = { readonly ids: readonly string[] } | { readonly newest: number }

/** How many other rows, such as deletions, are read for each document of the sample at most. */
const othersPerDocument = 10

/**
 * Returns the documents of a sample that exist, in the order of their ids. It ends early when they have
 * `viewTrialLimits.bytes`. The newest documents are those of the shards that answer first.
 */
export async function sampleDocuments(
  { options }: IndexDefinition, sample: ViewSample, request: RequestContext, services: Services,
): Promise<readonly ChangeRow[]> {
  const found: ChangeRow[] = []
  let bytes = 0
  const rows = 'ids' in sample
    ? named(sample.ids, request, services)
    : newest(sample.newest * (1 + othersPerDocument), request, services)
  for await (const row of rows) {
    const isExcluded = options['include_design'] !== true && row.id.startsWith(designPrefix)
    if (isExcluded || row.leaves[0]?.deleted !== false || row.body === undefined) continue
    found.push(row)
    bytes += row.body.length
    if (bytes >= viewTrialLimits.bytes || 'newest' in sample && found.length === sample.newest) break
  }
  return found.sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))
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

/** Reads changes from the newest on, at most so many. */
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
