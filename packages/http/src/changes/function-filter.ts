/** Filters of changes feeds whose decisions a function of a design document makes. */
import type { ChangeRow, Leaf } from '@sectional/core'
import { ClientGoneError, SandboxError, type SandboxErrorCode } from '@sectional/runtime'
import { callError } from '../design-functions/function-call.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { candidateDocuments, type Candidate } from './candidate-documents.ts'
import { shownLeaves, type ChangesFilter, type PassedLeaves, type ShownRevisions } from './changes-filter.ts'
import type { FilterFunction } from './filter-function.ts'

/** Most documents of one call. */
const callDocumentsMax = 128
/** A call of less than this many milliseconds is followed by one with twice as many documents. */
const shortCallMs = 50
/**
 * A call of more than this many milliseconds is followed by one with half as many documents. Writes to the same
 * database may wait for the call, because their validation runs in the same processes.
 */
const longCallMs = 200
/** Failures of a call that one of its documents may have caused. */
const documentFailures: ReadonlySet<SandboxErrorCode> = new Set(['timeout', 'memory', 'crashed', 'too_large'])

/**
 * Calls the function for many documents at a time. The first call has one document, so that a function that never
 * returns is found out soon, and the number then follows the time that the calls take.
 */
export class FunctionFilter implements ChangesFilter {
  readonly body = true
  readonly fields = null
  readonly #function: FilterFunction
  readonly #shown: ShownRevisions
  readonly #request: RequestContext
  readonly #services: Services
  /** Number of documents of the next call. */
  #size = 1

  constructor(called: FilterFunction, shown: ShownRevisions, request: RequestContext, services: Services) {
    this.#function = called
    this.#shown = shown
    this.#request = request
    this.#services = services
  }

  /** @throws ApiError when the function fails for a document, or cannot be run for long */
  async pass(rows: readonly ChangeRow[], at: number): Promise<PassedLeaves> {
    const candidates: Candidate[] = []
    const lists: (readonly Leaf[])[] = []
    for (let index = at; index < rows.length && (index === at || candidates.length < this.#size); index++) {
      const row = rows[index]!
      const leaves = shownLeaves(row, this.#shown.allLeaves)
      lists.push(leaves)
      for (const leaf of leaves) candidates.push({ row, leaf })
    }
    const passed = new Set<Leaf>()
    for (let done = 0; done < candidates.length;) {
      if (this.#request.signal.aborted) throw new ClientGoneError()
      const decisions = await this.#decide(candidates.slice(done, done + this.#size))
      for (const passes of decisions) {
        if (passes) passed.add(candidates[done]!.leaf)
        done++
      }
    }
    return lists.map(leaves => leaves.filter(leaf => passed.has(leaf)))
  }

  /** Returns for the first candidates whether they pass. When it returns none, it must be called with fewer of them. */
  async #decide(candidates: readonly Candidate[]): Promise<readonly boolean[]> {
    const { runtime: { clock }, filterCalls } = this.#services
    const documents = await candidateDocuments(candidates, this.#shown.conflicts, this.#request, this.#services)
    const texts = documents.filter(document => document !== null)
    if (texts.length === 0) return documents.map(() => false)
    try {
      const decisions = await filterCalls.run(this.#request, async () => {
        const begin = clock.monotonic()
        const passes = await this.#function.decide(texts)
        this.#adapt(texts.length, clock.monotonic() - begin)
        return passes
      })
      let next = 0
      return documents.map(document => document !== null && decisions[next++]!)
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      if (texts.length === 1 || !documentFailures.has(error.code)) throw callError(error, this.#function.called)
      this.#size = 1
      return []
    }
  }

  #adapt(documents: number, ms: number): void {
    if (ms > longCallMs) this.#size = Math.max(1, Math.floor(documents / 2))
    else if (ms < shortCallMs && documents >= this.#size) this.#size = Math.min(callDocumentsMax, 2 * this.#size)
  }
}
