import { builtInReduce, type IndexDefinition } from '@sectional/core'
import { BuiltInReducer } from './built-in-reducer.ts'
import { CustomReducer } from './custom-reducer.ts'
import type { JavaScriptParts } from './javascript-functions.ts'
import type { ViewReducer } from './view-reducer.ts'

/** @param definition with a reduce function */
export function viewReducer(parts: JavaScriptParts, definition: IndexDefinition): ViewReducer {
  const builtIn = builtInReduce(definition.reduce!)
  return builtIn === undefined ? new CustomReducer(parts, definition) : new BuiltInReducer(builtIn, parts.turns)
}
