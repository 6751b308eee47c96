/** Declares the limit for the results of custom reduce functions. */
import { choice, defaultValues, integer, option } from '@sectional/core/options'
import type { OptionType, OptionValues } from '@sectional/core/options'

const ratioMax = 1_000_000
const ratio: OptionType<number> = {
  kind: `number from 0 to ${ratioMax}`,
  parse: given => {
    if (!/^\d{1,7}(\.\d{1,9})?$/.test(given) || Number(given) > ratioMax) {
      throw new Error(`only a ${ratio.kind} is allowed`)
    }
    return Number(given)
  },
  format: value => Number.isInteger(value) ? value.toFixed(1) : String(value),
}

export const reduceDeclarations = {
  reduceLimit: option('query_server_config/reduce_limit', choice('true', 'false', 'log'), {
    default: 'true',
    effect: 'live',
    help: 'What happens with a result of a custom reduce function that is too long compared with its arguments. true: '
      + 'the reduction fails. log: a line in the log, one a minute at most. false: nothing. Reductions that an index '
      + 'has stored stay as they are.',
  }),

  reduceLimitThreshold: option('query_server_config/reduce_limit_threshold', integer({
    min: 0, max: 2 ** 30, unit: 'characters',
  }), {
    default: 5000,
    effect: 'live',
    help: 'Length of the JSON of a result that is never too long.',
  }),

  reduceLimitRatio: option('query_server_config/reduce_limit_ratio', ratio, {
    default: 2,
    effect: 'live',
    help: 'A result that is longer than reduce_limit_threshold is too long unless the JSON of its arguments is at '
      + 'least this many times as long.',
  }),
}

/** The values of these options. Live options change with the configuration. */
export type ReduceLimit = OptionValues<typeof reduceDeclarations>

export const defaultReduceLimit: ReduceLimit = Object.freeze(defaultValues(reduceDeclarations))

/**
 * Returns why a result exceeds the limit; undefined when it does not.
 *
 * @param inputLength UTF-16 units of the JSON of the arguments
 * @param outputLength UTF-16 units of the JSON of the result
 */
export function reduceOverflow(
  { reduceLimit, reduceLimitThreshold, reduceLimitRatio }: ReduceLimit, inputLength: number, outputLength: number,
): string | undefined {
  if (reduceLimit === 'false' || outputLength <= reduceLimitThreshold) return undefined
  if (outputLength * reduceLimitRatio <= inputLength) return undefined
  return `Reduce output must shrink more rapidly: input size: ${inputLength} output size: ${outputLength}`
}
