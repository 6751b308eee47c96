import { type IndexDefinition, indexId } from '@sectional/core'
import type { Sandbox, SandboxFunction, Turns } from '@sectional/runtime'

/** What the functions of the definitions of one database need. */
export interface JavaScriptParts {
  readonly sandbox: Sandbox
  /** Names the database in the sandbox: its incarnation. */
  readonly database: string
  readonly turns: Turns
}

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
