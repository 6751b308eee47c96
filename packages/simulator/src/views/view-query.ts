import type { Dice } from '../world/dice.ts'
import { compareJson } from './json-order.ts'
import type { Json, SwarmView } from './view-functions.ts'

/** The parameters of a query, as docs/reference/views.md describes them. */
export interface SwarmQuery {
  readonly keys?: readonly Json[]
  readonly startKey?: Json
  readonly endKey?: Json
  readonly inclusiveEnd: boolean
  readonly descending: boolean
  readonly skip: number
  readonly limit: number | null
  /** null: rows are not reduced; 0: all rows are one group; otherwise groups of equal beginnings, or of equal keys. */
  readonly groupLevel: number | 'exact' | null
  readonly update: 'true' | 'false' | 'lazy'
}

/** The query of all rows. */
export const wholeView: SwarmQuery = {
  inclusiveEnd: true, descending: false, skip: 0, limit: null, groupLevel: null, update: 'true',
}

const skipMax = 3
const limitMax = 8
const levelMax = 3

/** Draws the parameters of a query of a view. */
export function drawQuery(dice: Dice, { key, reduce }: SwarmView): SwarmQuery {
  const groupLevel = reduce === null || dice.chance(0.4)
    ? null
    : dice.pick([0, 'exact' as const, dice.integer(1, levelMax)])
  const descending = dice.chance(0.3)
  const range = dice.pick(['all', 'all', 'start', 'end', 'both', 'key', 'keys'] as const)
  const [low, high] = [key(dice), key(dice)].toSorted(compareJson) as [Json, Json]
  const [first, last] = descending ? [high, low] : [low, high]
  const listed = range === 'keys' && (groupLevel === null || groupLevel === 'exact')
  return {
    ...((range === 'start' || range === 'both') && { startKey: first }),
    ...((range === 'end' || range === 'both') && { endKey: last }),
    ...(range === 'key' && { startKey: low, endKey: low }),
    ...(listed && compareJson(low, high) !== 0 && { keys: dice.chance(0.5) ? [low, high] : [high, low] }),
    inclusiveEnd: range === 'key' || listed || !dice.chance(0.2),
    descending, groupLevel,
    skip: dice.chance(0.2) ? dice.integer(0, skipMax) : 0,
    limit: dice.chance(0.3) ? dice.integer(0, limitMax) : null,
    update: dice.pick(['true', 'true', 'true', 'false', 'lazy'] as const),
  }
}

/** Draws which part of the rows or groups a query lists. */
export function drawWindow(dice: Dice): Pick<SwarmQuery, 'skip' | 'limit'> {
  return {
    skip: dice.chance(0.2) ? dice.integer(0, skipMax) : 0, limit: dice.chance(0.6) ? dice.integer(1, limitMax) : null,
  }
}

/** Returns the query string of a query of a view. @param hasReduce whether the view has a reduce function */
export function queryText(query: SwarmQuery, hasReduce: boolean): string {
  const { keys, startKey, endKey, inclusiveEnd, descending, skip, limit, groupLevel, update } = query
  const parameters: readonly (readonly [string, Json | undefined])[] = [
    ['keys', keys], ['startkey', startKey], ['endkey', endKey],
    ['inclusive_end', inclusiveEnd ? undefined : false], ['descending', descending ? true : undefined],
    ['skip', skip === 0 ? undefined : skip], ['limit', limit ?? undefined],
    ['reduce', hasReduce && groupLevel === null ? false : undefined],
    ['group', groupLevel === 'exact' ? true : undefined],
    ['group_level', typeof groupLevel === 'number' && groupLevel > 0 ? groupLevel : undefined],
  ]
  const named = parameters.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(JSON.stringify(value))}`])
  return [...named, `update=${update}`].join('&')
}
