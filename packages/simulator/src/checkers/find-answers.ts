import { describe } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/**
 * Every answer of `_find` lists documents that match the selector, none twice and not more than the limit. Clients
 * examine the answers when they receive them.
 */
export function findAnswers({ operations }: FinalState): Findings {
  return operations.flatMap(operation => operation.kind === 'custom:find' && operation.readValue !== undefined
    ? [`${describe(operation)}: ${operation.readValue}`]
    : [])
}
