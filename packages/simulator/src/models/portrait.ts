/** The answers of a replica to its reads, as texts that equal replicas have in common. */
import type { ShardReplica } from '@sectional/core'
import { readCall, textOf } from './replica-contents.ts'

/** Ids before which documents are counted and lists begin. */
const bound = { id: 'd3', inclusive: false }

/** Returns the answers by name. Numbers that a replica chooses for itself are left out. */
export async function portraitOf(replica: ShardReplica, partitioned: boolean): Promise<Map<string, string>> {
  const rows = await all(replica.scanDocuments({ descending: false, body: true, leaves: true }, readCall))
  const changes = await all(
    replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, readCall),
  )
  const ids = changes.flatMap(({ id, local }) => local === true ? [] : [id]).sort()
  const byId = (a: { readonly id: string }, b: { readonly id: string }): number => a.id < b.id ? -1 : 1
  const info = await replica.upkeep.replicaInfo(readCall)
  const purges = await all(replica.scanPurges(0, readCall))
  const partitions = partitioned ? [...new Set(ids.flatMap(id => id.includes(':') ? [id.split(':', 1)[0]!] : []))] : []
  return new Map(Object.entries({
    'scanDocuments': rows,
    'scanDocuments, descending': await all(
      replica.scanDocuments({ start: bound, descending: true, limit: 2, body: false, leaves: false }, readCall),
    ),
    'countDocuments': [
      await replica.countDocuments({ descending: false }, readCall),
      await replica.countDocuments({ before: bound, descending: false }, readCall),
      await replica.countDocuments({ before: bound, descending: true }, readCall),
    ],
    'replicaInfo': [info.documentCount, info.deletedCount, info.seen, info.purgesSeen],
    'scanChanges': changes.map(({ sequence: _, ...row }) => row).sort(byId),
    'countChanges': await replica.countChanges(0, readCall),
    'openDocument': await Promise.all(ids.map(async id => {
      const snapshot = await replica.openDocument({ id, body: true, tree: true }, readCall)
      return [id, snapshot?.leaves, snapshot?.body, snapshot?.attachments]
    })),
    'diffRevisions': (await replica.diffRevisions(
      ids.map((id, index) => ({ id, revisions: [rows[index % (rows.length || 1)]?.revision ?? '1-x', '2-y'] })),
      readCall,
    )).map(({ sequence: _, ...diff }) => diff),
    'scanLocalDocuments': await all(replica.scanLocalDocuments({ descending: false }, readCall)),
    'scanPurges': purges.map(({ id, paths, uuid }) => ({ id, paths, uuid })),
    'partitionInfo': await Promise.all(partitions.map(async partition => {
      const { deletedCount, documentCount, sizes } = await replica.upkeep.partitionInfo(partition, readCall)
      return [partition, documentCount, deletedCount, sizes.external]
    })),
  }).map(([name, answer]) => [name, textOf(answer)]))
}

/**
 * Returns a contradiction between the answers of one replica: sequences ascend, a feed that continues at any of them
 * has the remaining rows, and these are as many as are counted.
 */
export async function feedContradiction(replica: ShardReplica, cut: (rows: number) => number): Promise<string | null> {
  const scan = { descending: false, body: false, locals: false }
  const rows = await all(replica.scanChanges({ ...scan, since: 0 }, readCall))
  const falling = rows.find(({ sequence }, index) => index > 0 && sequence <= rows[index - 1]!.sequence)
  if (falling !== undefined) return `the sequence of ${falling.id} does not exceed the one before`
  if (rows.length === 0) return null
  const at = cut(rows.length)
  const { id, sequence } = rows[at]!
  const rest = textOf(await all(replica.scanChanges({ ...scan, since: sequence }, readCall)))
  const wanted = textOf(rows.slice(at + 1))
  if (rest !== wanted) return `the changes since ${sequence} are ${rest}, not ${wanted}`
  const counted = await replica.countChanges(sequence, readCall)
  if (counted !== rows.length - at - 1) return `${counted} changes are counted since ${sequence}, but it lists others`
  const snapshot = await replica.openDocument({ id, body: false, tree: false }, readCall)
  return snapshot?.sequence === sequence
    ? null
    : `${id} has the sequence ${snapshot?.sequence}, and ${sequence} in the changes`
}

export async function all<Row>(pages: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}
