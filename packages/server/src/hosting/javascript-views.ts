import type { ViewParts } from '@sectional/cluster'
import type { Runtime } from '@sectional/runtime'
import { JavaScriptIndexer, viewReduceAgain, type Indexer } from '@sectional/shard'

/** The functions of views. */
export interface ViewFunctions extends Pick<ViewParts, 'reduceAgain'> {
  /** Returns the functions that build the indexes of one database, by its incarnation. */
  readonly indexerOf: (incarnation: string) => Indexer
}

/** Returns the functions of views in JavaScript, which run in the sandbox of the node. */
export function javascriptViews({ sandbox, turns }: Pick<Runtime, 'sandbox' | 'turns'>): ViewFunctions {
  return {
    indexerOf: database => new JavaScriptIndexer({ sandbox, database, turns }),
    reduceAgain: ({ incarnation: database }, definition) => viewReduceAgain({ sandbox, database, turns }, definition),
  }
}
