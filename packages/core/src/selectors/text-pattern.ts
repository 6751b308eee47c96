/** The patterns of `$regex`. Users write them, so their evaluation must be bounded in time. */
import type { Effort } from './effort.ts'
import { convertPattern, endAnchor, UnsupportedPattern } from './perl-pattern.ts'
import { SelectorError } from './selector-error.ts'

/** Longest `$regex`, in characters. */
const selectorRegexLengthMax = 1024
/**
 * A match that takes at most this many steps, of some nanoseconds each, runs without a time limit, because the limit
 * itself costs up to a millisecond.
 */
const freeStepsMax = 1_000_000
/** Longest time of matching one pattern with one text, in milliseconds. */
const matchMsMax = 200

/**
 * Tests a text with a pattern. Returns null when that takes longer than `msMax` milliseconds. `msMax` is Infinity when
 * the match is known to be short; only the first matches, which compile the pattern, may take some tenths of a second.
 */
export type TestInTime = (pattern: RegExp, text: string, msMax: number) => boolean | null
/** Tests without a limit of time. */
export const testPlainly: TestInTime = (pattern, text) => pattern.test(text)

/** Steps of effort for reading one character of a pattern, and for a class of Unicode characters (`\p{..}`). */
const characterSteps = 2
const unicodeClassSteps = 250

export class TextPattern {
  /** The pattern as the user wrote it. */
  readonly source: string
  readonly #pattern: RegExp
  /**
   * The number of repetitions in the pattern. Backtracking takes at most about
   * length^(repetitions + 1) * choices steps. Infinity: the pattern has nested repetitions.
   */
  readonly #repetitions: number
  /** In how many ways the alternatives and the optional parts can be combined, at most. */
  readonly #choices: number

  /** @throws SelectorError `bad_arg` */
  constructor(source: string, effort: Effort) {
    effort.spend(characterSteps * source.length + unicodeClassSteps * (source.match(/\\p/gi)?.length ?? 0))
    this.source = source
    this.#pattern = readPattern(source)
    // The estimate is of the pattern that is executed, because comments and quotes of PCRE can hide repetitions.
    const plain = this.#pattern.source.replaceAll(endAnchor, '_').replace(/\\./gs, '_').replace(/\[[^\]]*\]/g, '_')
    this.#repetitions = /\)[*+{]/.test(plain) ? Number.POSITIVE_INFINITY : countOf(plain, /[*+{]/g)
    this.#choices = 2 ** countOf(plain, /(?<![(*+?])\?/g) * alternativesMax(plain)
  }

  /** @throws SelectorError `bad_arg` when the match takes too long */
  test(text: string, testInTime: TestInTime, effort: Effort): boolean {
    const steps = Math.max(text.length, 1) ** (this.#repetitions + 1) * this.#choices
    effort.spendText(Math.min(steps, freeStepsMax))
    const fits = testInTime(this.#pattern, text, steps <= freeStepsMax ? Number.POSITIVE_INFINITY : matchMsMax)
    if (fits !== null) return fits
    throw badPattern(`${JSON.stringify(this.source)} took more than ${matchMsMax} ms on a text of `
      + `${text.length} characters; write it without repetitions within repetitions`)
  }
}

function countOf(text: string, part: RegExp): number {
  return text.match(part)?.length ?? 0
}

/**
 * Returns an upper bound of the number of combinations of alternatives. `n` bars in `g` groups have at most
 * (1 + n/g)^g combinations, which is the number when each group has as many bars.
 */
function alternativesMax(plain: string): number {
  const bars = countOf(plain, /\|/g)
  const groups = Math.min(bars, 1 + countOf(plain, /\(/g))
  return groups === 0 ? 1 : (1 + bars / groups) ** groups
}

function readPattern(source: string): RegExp {
  if (source.length > selectorRegexLengthMax) {
    throw badPattern(`the pattern has ${source.length} characters, at most ${selectorRegexLengthMax} are allowed; `
      + 'write a shorter one')
  }
  try {
    const { source: converted, flags } = convertPattern(source)
    return withOrWithoutUnicode(converted, flags)
  } catch (error) {
    const why = error instanceof UnsupportedPattern ? `: ${error.message}` : ''
    throw badPattern(`${JSON.stringify(source)}${why}`, { cause: error })
  }
}

/** @throws SyntaxError */
function withOrWithoutUnicode(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, `${flags}u`)
  } catch (error) {
    // Escapes of letters without a meaning are errors only with the flag `u`. Properties need this flag.
    if (/\\[pP]\{/.test(source)) throw error
    return new RegExp(source, flags)
  }
}

function badPattern(problem: string, options?: ErrorOptions): SelectorError {
  return new SelectorError('bad_arg', `Bad argument for operator $regex: ${problem}`, options)
}
