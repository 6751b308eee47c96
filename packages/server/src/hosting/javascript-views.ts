import type { ViewParts } from '@sectional/cluster'
import type { Runtime } from '@sectional/runtime'
import { JavaScriptIndexer, tryView, viewReduceAgain, type Indexer } from '@sectional/shard'

/** The functions of views. */
export interface ViewFunctions extends Pick<ViewParts, 'reduceAgain' | 'tryView'> {
  /** Returns the functions that build the indexes of one database, by its incarnation. */
  readonly indexerOf: (incarnation: string) => Indexer
}

/** Returns the functions of views in JavaScript, which run in the sandbox of the node. */
export function javascriptViews(
  { sandbox, turns, clock }: Pick<Runtime, 'sandbox' | 'turns' | 'clock'>,
): ViewFunctions {
  return {
    indexerOf: database => new JavaScriptIndexer({ sandbox, database, turns }),
    reduceAgain: ({ incarnation: database }, definition) => viewReduceAgain({ sandbox, database, turns }, definition),
    tryView: ({ incarnation: database }, definition, documents, signal) =>
      tryView({ sandbox, database, turns, clock }, definition, documents, signal),
  }
}
