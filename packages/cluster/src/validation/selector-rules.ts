/** Validation by selectors: `validate_doc_update` of design documents with `language: "query"`. */
import {
  ApiError, compileSelector, parseSelector, PatternBudget, SelectorError, selectorJson, shortJson, type Selector,
} from '@sectional/core'
import type { Runtime } from '@sectional/runtime'
import type { DesignDocument } from '../contracts/design-document.ts'

export interface SelectorRule {
  /** Id of the design document. */
  readonly designDocument: string
  /** The error with which all writes are refused when the design document has no valid selector. */
  readonly selector: Selector | ApiError
}

/** Returns the rule of a design document whose language is `query`. */
export function selectorRule(document: DesignDocument): SelectorRule {
  return document.derived(ruleOf)
}

function ruleOf({ id, members }: DesignDocument): SelectorRule {
  return { designDocument: id, selector: parsed(id, members['validate_doc_update']) }
}

function parsed(designDocument: string, value: unknown): Selector | ApiError {
  try {
    return parseSelector(value)
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    const reason = `Writes are refused because validate_doc_update of ${designDocument} is not a valid selector: `
      + `${error.message}. Correct or delete the design document.`
    return new ApiError('unknown_error', reason, { cause: error })
  }
}

/** Most characters of a condition that an error text shows. */
const shownMax = 200

/**
 * Returns a function that tests writes with a rule: it returns why a write is refused, or undefined when it passes. All
 * calls together may spend as much time on patterns as one request (`PatternBudget`).
 *
 * The function gets the arguments of validation functions, as JSON of `[newDoc, oldDoc, userCtx, secObj]`. The selector
 * is applied to an object with these members.
 */
export function selectorTest(
  { designDocument, selector }: SelectorRule, { clock, machine }: Pick<Runtime, 'clock' | 'machine'>,
): (argumentList: Buffer) => ApiError | undefined {
  if (selector instanceof ApiError) return () => selector
  const budget = new PatternBudget(clock, machine)
  const matches = compileSelector(selector, budget.testInTime)
  return argumentList => {
    const [newDoc, oldDoc, userCtx, secObj] = JSON.parse(argumentList.toString()) as readonly unknown[]
    const subject = { newDoc, oldDoc, userCtx, secObj }
    budget.beginDocument()
    try {
      if (matches(subject)) return undefined
      const condition = unmet(selector, each => compileSelector(each, budget.testInTime)(subject))
      const shown = shortJson(selectorJson(condition), shownMax)
      const reason = `The document does not pass ${designDocument}, which requires ${shown}`
      return new ApiError('forbidden', reason)
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error
      return failed(designDocument, error)
    }
  }
}

/** Returns the first condition that is not met, of several that all must be. */
function unmet(selector: Selector, matches: (condition: Selector) => boolean): Selector {
  if (selector.kind !== 'and') return selector
  const first = selector.operands.find(operand => !matches(operand))
  return first === undefined ? selector : unmet(first, matches)
}

function failed(designDocument: string, cause: SelectorError): ApiError {
  return new ApiError('unknown_error', `validate_doc_update of ${designDocument}: ${cause.message}`, { cause })
}
