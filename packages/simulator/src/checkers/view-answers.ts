import { describe } from './final-state.ts'
import type { FinalState, Findings } from './final-state.ts'

/**
 * Every answer to a query lists rows or groups in order, none twice and not more than the limit, and the rows of each
 * document are those of one revision. Clients examine the answers when they receive them.
 */
export function viewAnswers({ operations }: FinalState): Findings {
  return operations.flatMap(operation => operation.kind === 'custom:query-view' && operation.readValue !== undefined
    ? [`${describe(operation)}: ${operation.readValue}`]
    : [])
}
