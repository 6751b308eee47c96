/** Validation by selectors: `validate_doc_update` of design documents with `language: "query"`. */
import {
  ApiError, compileSelector, parseSelector, SelectorError, selectorJson, type Selector,
} from '@sectional/core'
import type { Machine } from '@sectional/runtime'
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
    return failed(designDocument, error)
  }
}

/** Most characters of a condition that an error text shows. */
const shownMax = 200

/**
 * Tests a write with a rule.
 *
 * @param argumentList JSON of `[newDoc, oldDoc, userCtx, secObj]`, the arguments of validation functions. The selector
 * is applied to an object with these members
 * @returns why the write is refused, or undefined when it passes
 */
export function selectorRefusal(
  { designDocument, selector }: SelectorRule, argumentList: Buffer, machine: Machine,
): ApiError | undefined {
  if (selector instanceof ApiError) return selector
  const [newDoc, oldDoc, userCtx, secObj] = JSON.parse(argumentList.toString()) as readonly unknown[]
  const subject = { newDoc, oldDoc, userCtx, secObj }
  const matches = (condition: Selector): boolean =>
    compileSelector(condition, (pattern, text, msMax) =>
      msMax === Infinity ? pattern.test(text) : machine.testInTime(pattern, text, msMax))(subject)
  try {
    if (matches(selector)) return undefined
    const condition = JSON.stringify(selectorJson(unmet(selector, matches)))
    const shown = condition.length <= shownMax ? condition : `${condition.slice(0, shownMax)}...`
    return new ApiError('forbidden', `The document does not pass ${designDocument}, which requires ${shown}`)
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    return failed(designDocument, error)
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
