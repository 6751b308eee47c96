import { ApiError } from '@sectional/core'

/** How much of the changes that an answer needs was read by builds. Both are numbers of sequences. */
export interface BuildProgress { readonly done: number; readonly total: number }

/** The error of a query whose time limit has passed before the indexes were built. The builds continue. */
export class IndexBehindError extends ApiError {
  readonly progress: BuildProgress

  constructor(progress: BuildProgress) {
    const { done, total } = progress
    super('timeout', `The index is being built: ${done} of ${total} changes were read. Try again later.`)
    this.progress = progress
  }
}

/** Returns the progress of several shards together. */
export function sumProgress(shards: readonly BuildProgress[]): BuildProgress {
  return shards.reduce((sum, { done, total }) => ({ done: sum.done + done, total: sum.total + total }),
    { done: 0, total: 0 })
}
