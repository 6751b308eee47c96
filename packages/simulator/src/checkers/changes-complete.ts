/**
 * Reads changes feeds after the cluster has come to rest: from the beginning and from since-tokens, no change may be
 * missed, and a reader must not receive again what it has already passed.
 */
import { decodeSinceToken, documentHash, formatRange, rangeContains } from '@sectional/core'
import type { SincePart } from '@sectional/core'
import { eventsDatabase } from '@sectional/server'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { generationOf } from '../history/document-history.ts'
import type { Operation } from '../workload/history.ts'
import { feedKinds, readChanges } from '../workload/changes-reader.ts'
import { seenAt } from '../workload/feed-places.ts'
import type { FeedPlace, FeedPlaces, FeedRow } from '../workload/feed-places.ts'
import { shardOf } from '../workload/history.ts'
import type { ReplicaContents } from './disk-contents.ts'
import type { FinalDatabase, Findings } from './final-state.ts'
import { PurgeRecords } from './purge-records.ts'

/** Since-tokens from which each database is read. */
const placesMax = 6
const answersMax = 100
const followMs = 200
const limitMax = 20

/**
 * Reads each database to its end, from the beginning and from some of the tokens that readers received. The reader must
 * then have seen the winner of each document. In a range where the token refers to the history of a replica that still
 * exists, no row may come again that the reader has passed (`repeatedRows`).
 */
export async function changesComplete(
  world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, places: FeedPlaces,
  operations: readonly Operation[],
): Promise<Findings> {
  const purges = new PurgeRecords(operations)
  const findings: string[] = []
  for (const [name, final] of databases) {
    const given = places.of(name).filter(({ incarnation }) => incarnation === final.record.incarnation)
    const some = given.length <= placesMax ? given : Array.from({ length: placesMax }, () => dice.pick(given))
    for (const since of [null, ...some]) {
      const rows = await readToEnd(world, dice, name, since)
      if (rows === null) findings.push(`the changes of ${name} since ${since?.token ?? 0} do not come to an end`)
      else findings.push(...missed(name, final, since, rows), ...repeatedRows(name, final, since, rows, purges))
    }
  }
  return findings
}

async function readToEnd(
  world: World, dice: Dice, database: string, since: FeedPlace | null,
): Promise<FeedRow[] | null> {
  const all: FeedRow[] = []
  const limit = dice.chance(0.3) ? { limit: dice.integer(1, limitMax) } : {}
  for (let place = since, count = 0; count < answersMax; count++) {
    const node = dice.pick(world.nodes).number
    // Later pages have no limit: reading a large database in small pages would not end.
    const { answer, incarnation } = await readChanges(world, {
      node, database, since: place, kind: dice.pick(feedKinds), allLeaves: dice.chance(0.5), timeoutMs: followMs,
      ...(count < answersMax / 2 ? limit : {}),
    })
    if (answer === null || answer.lastToken === null || incarnation === undefined) continue
    all.push(...answer.rows)
    if (answer.rows.length === 0) return all
    place = { token: answer.lastToken, database, incarnation, from: place, rows: answer.rows }
  }
  return null
}

function missed(name: string, final: FinalDatabase, since: FeedPlace | null, rows: readonly FeedRow[]): string[] {
  const seen = seenAt(since)
  for (const { id, leaves } of rows) seen.set(id, new Set([...seen.get(id) ?? [], ...leaves]))
  const token = partsOf(since)
  return [...final.documents].flatMap(([id, { leaves: [winner] }]) => {
    const received = seen.get(id)
    if (winner === undefined || received?.has(winner.revision) === true) return []
    // Nodes may record events again after the disks were read.
    const isLater = (revision: string): boolean => generationOf(revision) > generationOf(winner.revision)
    if (name === eventsDatabase && [...received ?? []].some(isLater)) return []
    if (namesLostReplica(token, new Range(final, id))) return []
    const reader = `a reader of ${name} since ${since?.token ?? 0}`
    return [`${reader} has not received ${id} ${winner.revision}, but ${[...received ?? ['nothing']].join(', ')}`]
  })
}

/**
 * Returns whether the token refers to a replica that is lost for good. The replica may have taken with it a change that
 * replaced an earlier change before the reader received it (packages/cluster/DESIGN.md).
 */
function namesLostReplica(token: readonly SincePart[], range: Range): boolean {
  return range.of(token).some(({ history }) => !range.replicas.some(replica => replica.history === history))
}

/**
 * Finds rows of ranges that were started again from the beginning without need. If the replica that was read still
 * exists, it is an error to repeat a row that the reader had passed on it, no matter which replica the feed continues
 * with. Otherwise, if another replica that the token refers to exists, there must not be more rows than that replica
 * has after the token's position.
 *
 * A purge may move the row of a document on one replica only: that replica had received the purged revision, and on the
 * other one the purge found nothing. A reader that continues on the first replica rightly receives the document again.
 */
export function repeatedRows(
  name: string, final: FinalDatabase, since: FeedPlace | null, rows: readonly FeedRow[],
  purges: PurgeRecords,
): string[] {
  const token = partsOf(since)
  if (token.length === 0) return []
  return [...Map.groupBy(rows, ({ id }) => formatRange(shardOf(final.record, id).range)).values()].flatMap(ofRange => {
    const range = new Range(final, ofRange[0]!.id)
    const places = range.placesOf(token)
    const read = places.find(({ replica }) => replica.history === range.of(token)[0]?.history)
    const begun = (problem: string): string[] =>
      [`${name} since ${since!.token} begins ${range.name} again: ${problem}`]
    if (read !== undefined) {
      const moved = ({ id }: FeedRow): boolean => purges.ofDocument(name, id).length > 0
        && places.some(({ replica, sequence }) => (replica.sequences.get(id) ?? 0) > sequence)
      const passed = ofRange.filter(row =>
        (read.replica.sequences.get(row.id) ?? Infinity) <= read.sequence && !moved(row))
      return passed.length > 0 ? begun(`it repeats ${passed.map(({ id }) => id).join(', ')}`) : []
    }
    const surplus = places.length === 0 ? 0
      : new Set(ofRange.map(({ id }) => id)).size - Math.min(...places.map(({ left }) => left))
    return surplus > 0 ? begun(`${surplus} rows too many`) : []
  })
}

function partsOf(place: FeedPlace | null): readonly SincePart[] {
  const token = place === null ? undefined : decodeSinceToken(place.token)
  return token?.kind === 'vector' ? token.parts : []
}

interface Place {
  readonly replica: ReplicaContents
  /** The reader has passed the replica's changes up to this sequence. */
  readonly sequence: number
  /** Number of sequences between that one and the replica's last one. */
  readonly left: number
}

/** The shard range of one document. */
class Range {
  readonly name: string
  readonly replicas: readonly ReplicaContents[]
  readonly #hash: number

  constructor({ record, replicas }: FinalDatabase, id: string) {
    this.name = formatRange(shardOf(record, id).range)
    this.replicas = replicas.filter(({ range }) => range === this.name)
    this.#hash = documentHash(id, record.partitioned)
  }

  /** Returns the parts of a token that concern the range, beginning with the replica that was read. */
  of(token: readonly SincePart[]): readonly SincePart[] {
    return token.filter(({ range }) => rangeContains(range, this.#hash))
  }

  /** Returns the token's positions on the replicas that still exist. */
  placesOf(token: readonly SincePart[]): readonly Place[] {
    return this.of(token).flatMap(({ history, sequence }) => {
      const replica = this.replicas.find(each => each.history === history)
      return replica === undefined ? [] : [{ replica, sequence, left: replica.sequence - sequence }]
    })
  }
}
