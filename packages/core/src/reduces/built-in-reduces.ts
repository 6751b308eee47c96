/** The built-in reduce functions by their names. */
import { ApiError } from '../errors.ts'
import type { BuiltInReduce } from './built-in-reduce.ts'
import { countReduce } from './count-reduce.ts'
import { distinctReduce } from './distinct-reduce.ts'
import { firstReduce, lastReduce } from './edge-reduce.ts'
import { bottomReduce, rankMax, topReduce } from './rank-reduce.ts'
import { statsReduce } from './stats-reduce.ts'
import { sumReduce } from './sum-reduce.ts'

const plainReduces: readonly BuiltInReduce[] = [
  sumReduce, countReduce, statsReduce, distinctReduce, firstReduce, lastReduce,
]

/**
 * Returns the built-in reduce function that the `reduce` member of a view names, or undefined if there is none.
 *
 * @param source the member. As in CouchDB, it may continue behind the name, for instance with the line break at the end
 * of the file that it was read from; only the number of `_top_N` and `_bottom_N` must be the last part.
 */
export function builtInReduce(source: string): BuiltInReduce | undefined {
  const ranked = rankedName(source)
  if (ranked === undefined) return plainReduces.find(({ name }) => source.startsWith(name))
  const { direction, count } = ranked
  if (!isRank(count)) return undefined
  return direction === 'top' ? topReduce(count) : bottomReduce(count)
}

/**
 * Checks the `reduce` member of a view when its design document is saved. A source that does not start with an
 * underscore is not a name, and is not checked here.
 *
 * @throws ApiError `invalid_design_doc` for the name of a function that does not exist, and for an N outside of 1 to
 * `rankMax`
 */
export function checkReduceName(source: string): void {
  if (!source.startsWith('_') || builtInReduce(source) !== undefined) return
  const ranked = rankedName(source)
  throw new ApiError('invalid_design_doc', ranked === undefined
    ? `\`${source}\` is not a supported reduce function.`
    : Number.isNaN(ranked.count) ? 'invalid rank reducer' : `rank value must be between 1 and ${rankMax}`)
}

/** Returns undefined when the source does not start with `_top_` or `_bottom_`. */
function rankedName(source: string): { readonly direction: string; readonly count: number } | undefined {
  const [, direction, count] = /^_(top|bottom)_(.*)$/s.exec(source) ?? []
  if (direction === undefined) return undefined
  return { direction, count: /^[+-]?\d+\s*$/.test(count!) ? Number(count) : NaN }
}

function isRank(count: number): boolean {
  return count >= 1 && count <= rankMax
}
