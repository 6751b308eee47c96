import { compareUtf8, type IndexDefinition, mapBounded } from '@sectional/core'
import type { Turns } from '@sectional/runtime'
import { type IndexKeys, separatingPlace } from './index-keys.ts'
import type { Indexer } from './indexer.ts'
import { noCache, withoutAdding } from './part-cache.ts'
import type { PartCache } from './part-cache.ts'
import type { IndexSource, StoredRow } from './row-reader.ts'
import { RowTree, type Run } from './row-tree.ts'
import { RowValues } from './row-values.ts'
import { dividedEntries, dividedRows, encodePage, type Summary } from './summary-page.ts'

/** The new value of the row at a place; null removes the row. */
export interface RowChange { readonly place: string; readonly value: Uint8Array | null }

/** The rows of a run after changes, or of a part of it when they are too many. The first part begins where it did. */
export interface RunPart { readonly place: string; readonly rows: readonly StoredRow[] }

export interface SummaryChanges {
  /** The new pages by key; null removes a page. */
  readonly pages: ReadonlyMap<string, Uint8Array | null>
  readonly height: number
  /** The number of rows that are summarised; undefined when there are no summaries. */
  readonly rowCount: number | undefined
  /** The runs whose rows have changed, with the rows that they have now. */
  readonly runs: readonly RunPart[]
}

/** The index whose summaries are changed. */
export interface SummaryParts {
  readonly source: IndexSource
  readonly keys: IndexKeys
  readonly height: number
  readonly definition: IndexDefinition
  readonly indexer: Indexer
}

/** The summaries that replace a summary, by its place. The first one has the same place. */
type Replacements = ReadonlyMap<string, readonly Summary[]>

interface ChangedRun { readonly run: Run; readonly changes: RowChange[] }

/** Number of runs that are read at the same time. */
const readsMax = 8

/**
 * Computes the pages of summaries after changes of rows. It reads the runs that change, and the pages above them. Empty
 * runs and pages are removed; small ones are not merged with their neighbours.
 *
 * @param changes at least one, ascending by place
 * @param cache of the state before the changes. What is read is not added to it, because queries may never need it
 */
export async function updateSummaries(
  parts: SummaryParts, turns: Turns, changes: readonly RowChange[], cache: PartCache = noCache,
): Promise<SummaryChanges> {
  const { source, keys, definition, indexer } = parts
  const tree = new RowTree(source, keys, parts.height, withoutAdding(cache))
  const values = new RowValues(indexer, definition)
  const runs = changedRuns(tree, changes)
  const runParts = await mapBounded(runs, readsMax, async (changed): Promise<readonly RunPart[]> => {
    await turns.pause()
    const { run } = changed
    const rows = merged((await tree.rows(run)).toArray(), changed.changes)
    return dividedRows(rows).map((part, at, all) => ({
      place: at === 0 ? run.from : separatingPlace(all[at - 1]!.at(-1)!.place, part[0]!.place), rows: part,
    }))
  })
  const pages = new Map<string, Uint8Array | null>()
  let replaced = await replaceRuns(values, runs, runParts)
  for (let level = 1; ; level++) {
    const divisions = changedPages(tree, level, [...replaced.keys()]).map(({ place, below }) => {
      const { kept, removed } = withoutEmpty(tree.page(level, place).entries.flatMap(entry =>
        below.has(entry.place) ? replaced.get(entry.place)! : [entry]))
      for (const { place: empty } of removed) {
        // All entries of an empty page but the first one were removed before, and the first one begins where it does.
        for (let child = level - 1; child >= 1; child--) pages.set(keys.page(child, empty), null)
      }
      return { place, lists: dividedEntries(kept) }
    })
    for (const list of divisions.flatMap(({ lists }) => lists)) {
      pages.set(keys.page(level, list[0]!.place), encodePage(list))
    }
    const isRoot = level === parts.height
    const lists = divisions.flatMap(division => division.lists)
    const summaries = isRoot && lists.length === 1 ? [] : await summarise(values, lists)
    if (isRoot) {
      const height = lists.length === 1 ? level : await addRoots(keys, values, pages, level, summaries)
      const rowCount = lists.flat().reduce((sum, { count }) => sum + count, 0)
      return { pages, height, rowCount, runs: runParts.flat() }
    }
    let at = 0
    replaced = new Map(divisions.map(({ place, lists }) => [place, summaries.slice(at, at += lists.length)]))
  }
}

/** Returns the pages of a level above changed runs or pages, each with the places of its changed entries. */
function changedPages(
  tree: RowTree, level: number, places: readonly string[],
): readonly { readonly place: string; readonly below: ReadonlySet<string> }[] {
  const groups = Map.groupBy(places, place => tree.pageAt(level, place))
  return [...groups].map(([place, below]) => ({ place, below: new Set(below) }))
}

/** Separates the entries of a page without rows. The first entry is kept, so that it begins where the page does. */
function withoutEmpty(
  entries: readonly Summary[],
): { readonly kept: readonly Summary[]; readonly removed: readonly Summary[] } {
  const isKept = ({ count }: Summary, at: number): boolean => at === 0 || count > 0
  return { kept: entries.filter(isKept), removed: entries.filter((entry, at) => !isKept(entry, at)) }
}

/** Groups the changes by the runs in which they are. */
function changedRuns(tree: RowTree, changes: readonly RowChange[]): readonly ChangedRun[] {
  const runs: ChangedRun[] = []
  for (const change of changes) {
    const last = runs.at(-1)
    if (last !== undefined && compareUtf8(change.place, last.run.to) < 0) last.changes.push(change)
    else runs.push({ run: tree.runAt(change.place), changes: [change] })
  }
  return runs
}

/** Returns the summaries of the parts of the changed runs, by where the runs began. */
async function replaceRuns(
  values: RowValues, runs: readonly ChangedRun[], parts: readonly (readonly RunPart[])[],
): Promise<Replacements> {
  const reduced = (await values.ofRows(parts.flat().map(({ rows }) => rows))).values()
  const summaryOf = ({ place, rows }: RunPart): Summary =>
    ({ place, count: rows.length, value: reduced.next().value! })
  return new Map(runs.map(({ run }, at) => [run.from, parts[at]!.map(summaryOf)]))
}

/** Writes pages above divided pages until there is one root again. Returns the new height. */
async function addRoots(
  keys: IndexKeys, values: RowValues, pages: Map<string, Uint8Array | null>, height: number,
  below: readonly Summary[],
): Promise<number> {
  const lists = dividedEntries(below)
  for (const list of lists) pages.set(keys.page(height + 1, list[0]!.place), encodePage(list))
  if (lists.length === 1) return height + 1
  return addRoots(keys, values, pages, height + 1, await summarise(values, lists))
}

/** Returns the summary of each list of entries. */
export async function summarise(
  values: RowValues, lists: readonly (readonly Summary[])[],
): Promise<readonly Summary[]> {
  const reduced = await values.ofValues(lists.map(entries =>
    entries.filter(({ count }) => count > 0).map(({ value }) => value)))
  return lists.map((entries, at) => ({
    place: entries[0]!.place, count: entries.reduce((sum, { count }) => sum + count, 0), value: reduced[at]!,
  }))
}

/** Applies changes to rows; both are ascending by place. */
function merged(rows: readonly StoredRow[], changes: readonly RowChange[]): readonly StoredRow[] {
  const result: StoredRow[] = []
  let at = 0
  for (const { place, value } of changes) {
    while (at < rows.length && compareUtf8(rows[at]!.place, place) < 0) result.push(rows[at++]!)
    if (rows[at]?.place === place) at++
    if (value !== null) result.push({ place, value })
  }
  return [...result, ...rows.slice(at)]
}
