/** Changes feeds after quiet: nothing is missed, from the beginning and from every token, and known places are gone on from. */
import { decodeSinceToken, documentHash, formatRange, rangeContains } from '@sectional/core'
import type { SincePart } from '@sectional/core'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { feedKinds, readChanges } from '../workload/changes-reader.ts'
import { seenAt } from '../workload/feed-places.ts'
import type { FeedPlace, FeedPlaces, FeedRow } from '../workload/feed-places.ts'
import { shardOf } from '../workload/history.ts'
import type { ReplicaContents } from './disk-contents.ts'
import type { FinalDatabase, Findings } from './final-state.ts'

/** Tokens that are gone on from, for each database. */
const placesMax = 6
const answersMax = 100
const followMs = 200
const limitMax = 20

/**
 * From the beginning and from some of the tokens that readers were given, each database is read to its end. Then the reader has seen
 * each document's winner. In a range in which the token names the life of a replica that is there, no row comes that it has passed.
 */
export async function changesComplete(world: World, dice: Dice, databases: ReadonlyMap<string, FinalDatabase>, places: FeedPlaces): Promise<Findings> {
  const findings: string[] = []
  for (const [name, final] of databases) {
    const given = places.of(name).filter(({ incarnation }) => incarnation === final.record.incarnation)
    const some = given.length <= placesMax ? given : Array.from({ length: placesMax }, () => dice.pick(given))
    for (const since of [null, ...some]) {
      const rows = await readToEnd(world, dice, name, since)
      if (rows === null) findings.push(`the changes of ${name} since ${since?.token ?? 0} do not come to an end`)
      else findings.push(...missed(name, final, since, rows), ...repeated(name, final, since, rows))
    }
  }
  return findings
}

async function readToEnd(world: World, dice: Dice, database: string, since: FeedPlace | null): Promise<FeedRow[] | null> {
  const all: FeedRow[] = []
  const limit = dice.chance(0.3) ? { limit: dice.integer(1, limitMax) } : {}
  for (let place = since, count = 0; count < answersMax; count++) {
    const node = dice.pick(world.nodes).number
    // Small pages would take a large database for ever.
    const { answer, incarnation } = await readChanges(world, {
      node, database, since: place, kind: dice.pick(feedKinds), allLeaves: dice.chance(0.5), timeoutMs: followMs, ...(count < answersMax / 2 ? limit : {}),
    })
    if (answer === null || answer.lastToken === null || incarnation === undefined) continue
    all.push(...answer.rows)
    if (answer.rows.length === 0) return all
    place = { token: answer.lastToken, database, incarnation, from: place, rows: answer.rows }
  }
  return null
}

function missed(name: string, { documents }: FinalDatabase, since: FeedPlace | null, rows: readonly FeedRow[]): string[] {
  const seen = seenAt(since)
  for (const { id, leaves } of rows) seen.set(id, new Set([...seen.get(id) ?? [], ...leaves]))
  return [...documents].flatMap(([id, { leaves: [winner] }]) => (
    winner === undefined || seen.get(id)?.has(winner.revision) === true ? []
      : [`whoever read ${name} since ${since?.token ?? 0} to the end has not seen ${id} ${winner.revision}, but ${[...seen.get(id) ?? ['nothing']].join(', ')}`]
  ))
}

function repeated(name: string, final: FinalDatabase, since: FeedPlace | null, rows: readonly FeedRow[]): string[] {
  const token = since === null ? undefined : decodeSinceToken(since.token)
  if (token?.kind !== 'vector') return []
  const replicas = Map.groupBy(final.replicas, ({ range }) => range)
  return rows.flatMap(({ id }) => {
    const { range } = shardOf(final.record, id)
    const known = (replicas.get(formatRange(range)) ?? []).flatMap(replica => placeOn(replica, token.parts, documentHash(id, final.record.partitioned)))
    if (known.length === 0 || known.some(({ replica, sequence }) => (replica.sequences.get(id) ?? Infinity) > sequence)) return []
    return [`${name} since ${since!.token} repeats ${id}, although the token names ${known.map(({ replica, sequence }) => `${sequence} of ${replica.node}`).join(', ')}: the range ${formatRange(range)} was begun again`]
  })
}

function placeOn(replica: ReplicaContents, parts: readonly SincePart[], hash: number): { readonly replica: ReplicaContents; readonly sequence: number }[] {
  const known = parts.filter(({ range, history }) => history === replica.history && rangeContains(range, hash)).map(({ sequence }) => sequence)
  return known.length === 0 ? [] : [{ replica, sequence: Math.max(...known) }]
}
