/** Paths of fields as selectors and projections name them (docs/reference/changes.md#selectors). */
import { Effort } from './effort.ts'
import { SelectorError } from './selector-error.ts'

export type FieldPath = readonly string[]

/**
 * What lies at a path; `missing`: an object on the way lacks the step; `blocked`: the way leads through something else.
 */
export type FieldValue =
  | { readonly kind: 'found'; readonly value: unknown }
  | { readonly kind: 'missing' }
  | { readonly kind: 'blocked' }

const missing: FieldValue = { kind: 'missing' }
const blocked: FieldValue = { kind: 'blocked' }

/**
 * `a.b` is two steps; a backslash before a dot makes it part of the name.
 * @param effort counts what reading the name costs
 * @throws SelectorError `invalid_field_name` when a step is empty
 */
export function parseFieldPath(name: string, effort?: Effort): FieldPath {
  effort?.spendFieldName(name.length)
  const steps = name.split(/(?<!\\)\./).map(step => step.replaceAll('\\.', '.'))
  if (steps.includes('')) throw new SelectorError('invalid_field_name', `Invalid field name: ${name}`)
  return steps
}

/**
 * Steps of effort for each step of a path in a list of fields: every document that is shown is cut down by all of them.
 */
const projectionFactor = 8

/**
 * The paths of the fields that documents are cut down to.
 * @throws SelectorError `invalid_field_name`; `bad_arg` when there are so many that cutting down one document would
 * take long
 */
export function parseFieldPaths(names: readonly string[]): readonly FieldPath[] {
  const effort = new Effort('Cutting a document down to its fields')
  return names.map(name => {
    const path = parseFieldPath(name, effort)
    effort.spend(projectionFactor * path.length)
    return path
  })
}

/** The name that `parseFieldPath` reads. */
export function formatFieldPath(path: FieldPath): string {
  return path.map(step => step.replaceAll('.', '\\.')).join('.')
}

/** An index of an array has one spelling, so that different paths lead to different values. */
const arrayIndex = /^(?:0|[1-9]\d{0,8})$/

/** Numeric steps index arrays. */
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
