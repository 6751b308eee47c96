import type { FindProgress, FindRequest, FindRow, FoundDocument, PageLimits, ScannedPlace } from '@sectional/core'
import { progressKeysMax, progressMsMax } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { rowPages } from '../row-reader.ts'
import type { MatchGroups } from './match-groups.ts'

/**
 * Collects the rows of an answer of `find`, in the order in which places are examined. Each page ends with a progress
 * row.
 */
export class FindAnswer {
  readonly #clock: Clock
  readonly #listsMatches: boolean
  readonly #groups: MatchGroups | undefined
  readonly #limits: PageLimits
  /** Number of matches after which the answer ends. */
  #left: number
  #page: FindRow[] = []
  #bytes = 0
  /** The numbers since the last page. */
  #keysExamined = 0
  #documentsExamined = 0
  #matches = 0
  #place: ScannedPlace | undefined
  #pageDue: number

  /**
   * @param groups receive each match before `found` is called; absent: the request does not ask for them
   * @param limits a page ends with the match that reaches one of them
   */
  constructor(
    { limit = Infinity, countOnly = false }: FindRequest, clock: Clock, groups?: MatchGroups, limits = rowPages,
  ) {
    this.#clock = clock
    this.#limits = limits
    this.#left = limit
    this.#listsMatches = !countOnly && groups === undefined
    this.#groups = groups
    this.#pageDue = clock.monotonic() + progressMsMax
  }

  /** Whether the limit is reached. Then nothing more should be examined. */
  get isComplete(): boolean { return this.#left <= 0 }

  /** Whether the page should be sent now. */
  get isPageDue(): boolean {
    const { pageRows, pageBytes } = this.#limits
    return this.#page.length >= pageRows || this.#bytes >= pageBytes || this.#keysExamined >= progressKeysMax
      || this.#clock.monotonic() >= this.#pageDue
  }

  /** Records that a place was examined without a match. @param documents the number of documents read for it */
  examined(place: ScannedPlace, documents: number): void {
    this.#place = place
    this.#keysExamined++
    this.#documentsExamined += documents
  }

  /** Records a match. @param documents the number of documents read for it */
  found(match: FoundDocument, documents: number): void {
    this.examined(match, documents)
    this.#left--
    this.#matches++
    if (!this.#listsMatches) return
    this.#page.push(match)
    this.#bytes += match.key.length + match.value.length + (match.body?.length ?? 0)
  }

  /** Records matches that were counted together. @param last the place of the last one */
  counted(last: ScannedPlace, matches: number): void {
    this.examined(last, 0)
    this.#matches += matches
  }

  /** Returns what was collected since the last page; empty when nothing was examined. */
  takePage(): readonly FindRow[] {
    const page = this.#page
    if (this.#place !== undefined) page.push(this.#progress(this.#place))
    this.#page = []
    this.#bytes = 0
    this.#keysExamined = 0
    this.#documentsExamined = 0
    this.#matches = 0
    this.#place = undefined
    this.#pageDue = this.#clock.monotonic() + progressMsMax
    return page
  }

  #progress({ range, key, id, number }: ScannedPlace): FindProgress {
    const groups = this.#groups?.take()
    return {
      kind: 'progress', range, key, id, number,
      keysExamined: this.#keysExamined, documentsExamined: this.#documentsExamined, matches: this.#matches,
      ...(groups && { groups }),
    }
  }
}
