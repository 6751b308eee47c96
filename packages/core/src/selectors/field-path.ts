/** Paths to fields of documents, as in selectors and projections (docs/reference/changes.md#selectors). */
import { Effort } from './effort.ts'
import { SelectorError } from './selector-error.ts'

export type FieldPath = readonly string[]

/**
 * The result of following a path. `missing`: an object on the path lacks the next step. `blocked`: a value on the path
 * is neither an object nor an array that has the next step.
 */
export type FieldValue =
  | { readonly kind: 'found'; readonly value: unknown }
  | { readonly kind: 'missing' }
  | { readonly kind: 'blocked' }

const missing: FieldValue = { kind: 'missing' }
const blocked: FieldValue = { kind: 'blocked' }

/**
 * Parses the name of a field. `a.b` has two steps; a dot or a dollar sign after a backslash is part of a step's name.
 *
 * @param effort is charged for the work
 * @throws SelectorError `invalid_field_name` when a step is empty
 */
export function parseFieldPath(name: string, effort?: Effort): FieldPath {
  effort?.spendFieldName(name.length)
  if (isPlainStep(name)) return [name]
  const steps = name.split(/(?<!\\)\./).map(step => step.replace(/\\([.$])/g, '$1'))
  if (steps.includes('')) throw new SelectorError('invalid_field_name', `Invalid field name: ${name}`)
  return steps
}

/**
 * Effort charged for each step of a path in a list of fields. The factor accounts for the later work: each document of
 * the result is reduced to all of these fields.
 */
const projectionFactor = 8

/**
 * Parses a list of fields to which documents are reduced.
 *
 * @throws SelectorError `invalid_field_name`; `bad_arg` when there are so many fields that reducing one document would
 * take too long
 */
export function parseFieldPaths(names: readonly string[]): readonly FieldPath[] {
  const effort = new Effort('Cutting a document down to its fields')
  return names.map(name => {
    const path = parseFieldPath(name, effort)
    effort.spend(projectionFactor * path.length)
    return path
  })
}

/** Returns the name from which `parseFieldPath` reads this path. */
export function formatFieldPath(path: FieldPath): string {
  if (path.length === 1 && isPlainStep(path[0]!)) return path[0]!
  const name = path.map(step => step.replaceAll('.', '\\.')).join('.')
  // Without the backslash, a selector would take the name for that of an operator.
  return name.startsWith('$') ? `\\${name}` : name
}

/** Whether a step is written like its name, as nearly all are. */
function isPlainStep(step: string): boolean {
  return step !== '' && !step.includes('.') && !step.includes('\\') && !step.startsWith('$')
}

/** An array index has only one spelling, so that different paths lead to different values. */
const arrayIndex = /^(?:0|[1-9]\d{0,8})$/

/** Follows a path. In an array, a numeric step is an index. */
export function fieldAt(document: unknown, path: FieldPath): FieldValue {
  let value = document
  for (const step of path) {
    if (Array.isArray(value)) {
      const index = arrayIndex.test(step) ? Number(step) : -1
      if (index < 0 || index >= value.length) return blocked
      value = value[index]
    } else if (typeof value === 'object' && value !== null) {
      if (!Object.hasOwn(value, step)) return missing
      value = (value as Record<string, unknown>)[step]
    } else {
      return blocked
    }
  }
  return { kind: 'found', value }
}
