/** Patterns of `$regex`: a user's, so that they must not hold the thread for ever. */
import type { Effort } from './effort.ts'
import { SelectorError } from './selector-error.ts'

/** Longest `$regex`, in characters. */
export const selectorRegexLengthMax = 1024
/**
 * What a pattern may cost at most to be matched without a limit of time, which itself costs up to a millisecond. A step
 * takes some nanoseconds.
 */
const freeStepsMax = 1_000_000
/** Longest match of one pattern with one text. */
const matchMsMax = 200

/**
 * Tries a pattern on a text. null: it takes longer than `msMax` milliseconds. Infinity: the match is short, and only
 * the first ones, which compile the pattern, may take some tenths of a second.
 */
export type TestInTime = (pattern: RegExp, text: string, msMax: number) => boolean | null
/** Steps of effort for reading one character of a pattern, and for a class of Unicode characters (`\p{..}`). */
const characterSteps = 2
const unicodeClassSteps = 250

export class TextPattern {
  readonly #source: string
  readonly #pattern: RegExp
  /**
   * With so many repetitions backtracking takes at most about length^(repetitions + 1) steps; Infinity: repetitions
   * within repetitions.
   */
  readonly #repetitions: number

  /** @throws SelectorError `bad_arg` */
  constructor(source: string, effort: Effort) {
    effort.spend(characterSteps * source.length + unicodeClassSteps * (source.match(/\\p/gi)?.length ?? 0))
    this.#source = source
    this.#pattern = readPattern(source)
    const plain = source.replace(/\\./gs, '_').replace(/\[[^\]]*\]/g, '_')
    this.#repetitions = /\)[*+{]/.test(plain) ? Number.POSITIVE_INFINITY : plain.match(/[*+{]/g)?.length ?? 0
  }

  /** @throws SelectorError `bad_arg` when it takes too long */
  test(text: string, testInTime: TestInTime, effort: Effort): boolean {
    const steps = text.length ** (this.#repetitions + 1)
    effort.spendText(Math.min(steps, freeStepsMax))
    const fits = testInTime(this.#pattern, text, steps <= freeStepsMax ? Number.POSITIVE_INFINITY : matchMsMax)
    if (fits !== null) return fits
    throw new SelectorError('bad_arg', `Bad argument for operator $regex: ${JSON.stringify(this.#source)} took more than ${matchMsMax} ms on a text of ${text.length} characters; write it without repetitions within repetitions`)
  }
}

/** A leading group of flags, `(?i)`, is PCRE's; the rest is close enough to JavaScript's own dialect. */
function readPattern(source: string): RegExp {
  if (source.length > selectorRegexLengthMax) {
    throw new SelectorError('bad_arg', `Bad argument for operator $regex: ${JSON.stringify(`a pattern of ${source.length} characters; at most ${selectorRegexLengthMax}`)}`)
  }
  const flags = /^\(\?([ims]+)\)/.exec(source)
  const [body, options] = flags === null
    ? [source, '']
    : [source.slice(flags[0].length), [...new Set(flags[1])].join('')]
  try {
    return new RegExp(body, `${options}u`)
  } catch {
    // Escapes of letters that mean nothing are errors only with `u`.
  }
  try {
    return new RegExp(body, options)
  } catch (error) {
    throw new SelectorError('bad_arg', `Bad argument for operator $regex: ${JSON.stringify(source)}`, { cause: error })
  }
}
