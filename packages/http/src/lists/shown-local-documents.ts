/**
 * The local documents that lists show. Those which servers write for their own use, such as checkpoints of CouchDB's
 * internal replication, are hidden, but can be opened by their ids.
 */
import type { IdBound, LocalDocument } from '@sectional/core'
import type { Coordinator } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import { directed, type IdRange } from './id-range.ts'

/** Beginnings of hidden ids, without `_local/`. */
const hiddenPrefixes = ['purge-', 'shard-sync-']

/** @param name the id without `_local/` */
export function isHidden(name: string): boolean {
  return hiddenPrefixOf(name) !== undefined
}

function hiddenPrefixOf(name: string): string | undefined {
  return hiddenPrefixes.find(prefix => name.startsWith(prefix))
}

export interface ShownRange {
  /** Ids without `_local/`. */
  readonly range: IdRange
  readonly descending: boolean
  /** Shown documents that are left out. */
  readonly skip: number
  /** The largest number of shown documents; null: all. */
  readonly limit: number | null
  readonly body: boolean
}

/** Lists the documents of a range without the hidden ones, which count neither for `skip` nor for `limit`. */
export async function* shownLocalDocuments(
  coordinator: Pick<Coordinator, 'listLocalDocuments'>, { range, descending, skip, limit, body }: ShownRange,
  request: RequestContext,
): AsyncGenerator<LocalDocument> {
  const { start, end } = directed(range, descending)
  let from = start
  let skipped = 0
  let shown = 0
  while (limit === null || shown < limit) {
    const asked = limit === null ? null : skip - skipped + limit - shown
    let read = 0
    let last = ''
    const { rows } = await coordinator.listLocalDocuments(request.database, {
      ...(from && { start: from }), ...(end && { end }), descending, skip: 0, limit: asked, body, leaves: false,
    }, request)
    for await (const page of rows) {
      for (const document of page) {
        read++
        last = document.id
        if (isHidden(last)) continue
        if (skipped < skip) skipped++
        else {
          shown++
          yield document
        }
      }
    }
    if (asked === null || read < asked) return
    from = behind(last, descending)
  }
}

/** Returns where a list goes on behind an id, and behind all hidden ones with the same beginning. */
function behind(name: string, descending: boolean): IdBound {
  const prefix = hiddenPrefixOf(name)
  if (prefix === undefined) return { id: name, inclusive: false }
  return descending ? { id: prefix, inclusive: false } : { id: afterAll(prefix), inclusive: true }
}

/** Returns the first text behind all that begin with the prefix, whose last character has one byte. */
function afterAll(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)
}
