import { ReplicaError } from '@sectional/core'
import type { CurrentDocument } from './document-changes.ts'

/** Documents in a row, and documents of one build, on which a function may exceed its limits. The build ends then. */
const inRowMax = 10
const inBuildMax = 100

/**
 * Counts the documents of a build on which the map function exceeded its limits. Each may take some seconds, so a build
 * that meets many of them ends, and the next one continues behind them. So a function that never ends does not occupy
 * the node for days, and documents that are written on purpose do not stop an index for good.
 */
export class ExceededLimits {
  #inRow = 0
  #inBuild = 0

  /** Call this with all documents, when they are written. @throws ReplicaError `exhausted` when there are too many */
  note(documents: readonly CurrentDocument[]): void {
    let failure: string | undefined
    for (const { result } of documents) {
      if (result.error === undefined || result.exceededLimits !== true) this.#inRow = 0
      else {
        this.#inRow++
        this.#inBuild++
        if (this.#inRow >= inRowMax || this.#inBuild >= inBuildMax) failure = result.error
      }
    }
    if (failure === undefined) return
    throw new ReplicaError('exhausted', `The function exceeded its limits for ${this.#inBuild} documents: ${failure}`)
  }
}
