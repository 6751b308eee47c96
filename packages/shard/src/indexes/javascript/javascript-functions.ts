import { type IndexDefinition, indexId } from '@sectional/core'
import type { Clock, Sandbox, SandboxFunction, Turns } from '@sectional/runtime'
import type { ReduceLimit } from './reduce-limit.ts'

/** What the functions of the definitions of one database need. */
export interface JavaScriptParts {
  readonly sandbox: Sandbox
  /** Names the database in the sandbox: its incarnation. */
  readonly database: string
  readonly turns: Turns
  /** The limit for the results of custom reduce functions. Undefined: the default. */
  readonly reduceLimit?: ReduceLimit
  /**
   * Receives the results that exceed the limit when they are only reported (`reduce_limit = log`). May be called for
   * each call of a reduce function.
   */
  readonly onReduceOverflow?: (index: string, reason: string) => void
  /** Receives what reduce functions throw. May be called for each call of a reduce function. */
  readonly onReduceFailure?: (index: string, reason: string) => void
}

/** What map functions need in addition, which are given up or called again after some time. */
export interface MapParts extends JavaScriptParts { readonly clock: Clock }

/**
 * Returns a function of a definition as the sandbox runs it. The functions of one definition share an isolate.
 *
 * @param source `map` or `reduce` of the definition
 */
export function sandboxFunction(database: string, definition: IndexDefinition, source: string): SandboxFunction {
  const { lib } = definition.options
  const modules = typeof lib === 'string' ? `{"views":{"lib":${lib}}}` : '{}'
  return { database, designDocument: indexId(definition), modules, source }
}
