import type { ViewParts } from '@sectional/cluster'
import { RepeatedLines, type Runtime } from '@sectional/runtime'
import {
  indexersByKind, JavaScriptIndexer, QueryIndexer, tryView, viewReduceAgain, type Indexer, type MapParts,
  type ReduceLimit,
} from '@sectional/shard'

/** The functions of views and of Mango's indexes. */
export interface ViewFunctions extends Pick<ViewParts, 'reduceAgain' | 'tryView'> {
  /** Returns the functions that build the indexes of one database, by its incarnation. */
  readonly indexerOf: (incarnation: string) => Indexer
}

/**
 * Returns the functions of views in JavaScript, which run in the sandbox of the node, and of Mango's indexes.
 *
 * @param reduceLimit the limit for the results of custom reduce functions. Undefined: the default
 */
export function javascriptViews(
  { sandbox, turns, clock, machine, log }: Pick<Runtime, 'sandbox' | 'turns' | 'clock' | 'machine' | 'log'>,
  reduceLimit?: ReduceLimit,
): ViewFunctions {
  const lines = new RepeatedLines(log, clock)
  const onReduceOverflow = (index: string, reason: string): void =>
    lines.warn('reduce overflow', { index, reason }, 'the result of a reduce function does not shrink')
  const onReduceFailure = (index: string, reason: string): void =>
    lines.warn('reduce failure', { index, reason }, 'a reduce function failed; the value of its group is null')
  const partsOf = (database: string): MapParts =>
    ({ sandbox, database, turns, clock, onReduceOverflow, onReduceFailure, ...(reduceLimit && { reduceLimit }) })
  return {
    indexerOf: incarnation => indexersByKind({
      javascript: new JavaScriptIndexer(partsOf(incarnation)), query: new QueryIndexer({ turns, clock, machine }),
    }),
    reduceAgain: ({ incarnation }, definition) => viewReduceAgain(partsOf(incarnation), definition),
    tryView: ({ incarnation }, definition, documents, signal) =>
      tryView(partsOf(incarnation), definition, documents, signal),
  }
}
