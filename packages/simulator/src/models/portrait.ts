/** The answers of a replica to its reads, as texts that equal replicas have in common. */
import type { IdBound, ShardReplica } from '@sectional/core'
import type { Dice } from '../world/dice.ts'
import { textOf } from '../world/value-text.ts'
import { readCall } from './replica-contents.ts'

/** A read whose answers equal replicas have in common. */
export interface Query { readonly name: string; ask(replica: ShardReplica): Promise<unknown> }

const drawnQueries = 4

/** Returns reads with fixed and with random parameters. Numbers that a replica chooses for itself are left out. */
export function drawQueries(dice: Dice, partitioned: boolean): readonly Query[] {
  const ids = partitioned ? ['p0:d2', 'p1:d3', 'w:17', 'z'] : ['d2', 'd3', 'w:17', '\u00e4/b', 'z']
  return [
    ...fixedQueries, ...(partitioned ? [partitions] : []),
    ...Array.from({ length: drawnQueries }, () => drawQuery(dice, () => dice.pick(ids))),
  ]
}

export async function portraitOf(replica: ShardReplica, queries: readonly Query[]): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  for (const { ask, name } of queries) answers.set(name, textOf(await ask(replica)))
  return answers
}

const fixedQueries: readonly Query[] = [
  {
    name: 'scanDocuments',
    ask: replica => all(replica.scanDocuments({ descending: false, body: true, leaves: true }, readCall)),
  },
  {
    name: 'replicaInfo',
    ask: async replica => {
      const { deletedCount, documentCount, purgesSeen, seen } = await replica.upkeep.replicaInfo(readCall)
      return { deletedCount, documentCount, purgesSeen, seen }
    },
  },
  {
    name: 'scanChanges',
    ask: async replica => {
      const rows = await all(replica.scanChanges({ since: 0, descending: false, body: true, locals: true }, readCall))
      return rows.map(({ sequence: _, ...row }) => row).sort((a, b) => a.id < b.id ? -1 : 1)
    },
  },
  { name: 'countChanges', ask: replica => replica.countChanges(0, readCall) },
  {
    name: 'openDocument',
    ask: async replica => Promise.all((await documentIds(replica)).map(async id => {
      const snapshot = await replica.openDocument({ id, body: true, tree: true }, readCall)
      return [id, snapshot?.leaves, snapshot?.body, snapshot?.attachments]
    })),
  },
  {
    name: 'diffRevisions',
    ask: async replica => {
      const ids = await documentIds(replica)
      const snapshots = await Promise.all(
        ids.map(id => replica.openDocument({ id, body: false, tree: false }, readCall)),
      )
      const wanted = ids.map((id, index) => ({
        id, revisions: [snapshots[index]!.leaves.at(-1)!.revision, `${(index % 4) + 1}-${'0'.repeat(32)}`],
      }))
      return (await replica.diffRevisions(wanted, readCall)).map(({ sequence: _, ...diff }) => diff)
    },
  },
  {
    name: 'latest revisions',
    ask: async replica => {
      const ids = await documentIds(replica)
      const trees = await Promise.all(ids.map(id => replica.openDocument({ id, body: false, tree: true }, readCall)))
      const requests = ids.map((id, index) => {
        const { path: { ids: [, ...ancestors], start } } = trees[index]!.tree!.at(-1)!
        return { id, revisions: [...ancestors.map((hash, up) => `${start - up - 1}-${hash}`), '1-none'], latest: true }
      })
      return replica.openRevisions(requests, readCall)
    },
  },
  { name: 'scanLocalDocuments', ask: replica => all(replica.scanLocalDocuments({ descending: false }, readCall)) },
  { name: 'openLocalDocuments', ask: replica => replica.openLocalDocuments(['l1', 'l2', 'l3', 'none'], readCall) },
  {
    name: 'scanPurges',
    ask: async replica =>
      (await all(replica.scanPurges(0, readCall))).map(({ id, paths, uuid }) => ({ id, paths, uuid })),
  },
]

const partitions: Query = {
  name: 'partitionInfo',
  ask: replica => Promise.all(['p0', 'p1', 'w', 's'].map(async partition => {
    const { deletedCount, documentCount, sizes } = await replica.upkeep.partitionInfo(partition, readCall)
    return [partition, documentCount, deletedCount, sizes.external]
  })),
}

/** Returns a scan or a count with random bounds. */
function drawQuery(dice: Dice, id: () => string): Query {
  const descending = dice.chance(0.5)
  const bound = (): IdBound => ({ id: id(), inclusive: dice.chance(0.5) })
  const bounds = {
    descending, ...(dice.chance(0.6) && { start: bound() }), ...(dice.chance(0.6) && { end: bound() }),
    ...(dice.chance(0.5) && { limit: dice.integer(0, 5) }),
  }
  switch (dice.pick(['documents', 'locals', 'count', 'changes'] as const)) {
    case 'documents': {
      const request = { ...bounds, body: dice.chance(0.5), leaves: dice.chance(0.5) }
      return {
        name: `scanDocuments ${JSON.stringify(request)}`, ask: replica => all(replica.scanDocuments(request, readCall)),
      }
    }
    case 'locals': return {
      name: `scanLocalDocuments ${JSON.stringify(bounds)}`,
      ask: replica => all(replica.scanLocalDocuments(bounds, readCall)),
    }
    case 'count': {
      const request = { before: bound(), descending }
      return {
        name: `countDocuments ${JSON.stringify(request)}`, ask: replica => replica.countDocuments(request, readCall),
      }
    }
    default: {
      const limit = dice.integer(0, 4)
      const request = { since: 0, descending, limit, body: false, locals: dice.chance(0.5) }
      return {
        name: `the number of changes ${JSON.stringify(request)}`,
        ask: async replica => (await all(replica.scanChanges(request, readCall))).length,
      }
    }
  }
}

async function documentIds(replica: ShardReplica): Promise<string[]> {
  const rows = await all(replica.scanChanges({ since: 0, descending: false, body: false, locals: false }, readCall))
  return rows.map(({ id }) => id).sort()
}

/**
 * Returns a contradiction between the answers of one replica: sequences ascend, a feed that continues at any of them
 * has the remaining rows, and these are as many as are counted.
 */
export async function feedContradiction(replica: ShardReplica, dice: Dice): Promise<string | null> {
  const scan = { descending: false, body: false, locals: false }
  const rows = await all(replica.scanChanges({ ...scan, since: 0 }, readCall))
  const falling = rows.find(({ sequence }, index) => index > 0 && sequence <= rows[index - 1]!.sequence)
  if (falling !== undefined) return `the sequence of ${falling.id} does not exceed the one before`
  if (rows.length === 0) return null
  const at = dice.integer(0, rows.length - 1)
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
