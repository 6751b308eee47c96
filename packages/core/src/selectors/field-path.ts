/** Paths of fields as selectors and projections name them (api.md A7.8). */
import { SelectorError } from './selector-error.ts'

export type FieldPath = readonly string[]

/** What lies at a path; `missing`: an object on the way lacks the step; `blocked`: the way leads through something else. */
export type FieldValue = { readonly kind: 'found'; readonly value: unknown } | { readonly kind: 'missing' } | { readonly kind: 'blocked' }

const missing: FieldValue = { kind: 'missing' }
const blocked: FieldValue = { kind: 'blocked' }

/**
 * `a.b` is two steps; a backslash before a dot makes it part of the name.
 * @throws SelectorError `invalid_field_name` when a step is empty
 */
export function parseFieldPath(name: string): FieldPath {
  const steps = name.split(/(?<!\\)\./).map(step => step.replaceAll('\\.', '.'))
  if (steps.includes('')) throw new SelectorError('invalid_field_name', `Invalid field name: ${name}`)
  return steps
}

/** The name that `parseFieldPath` reads. */
export function formatFieldPath(path: FieldPath): string {
  return path.map(step => step.replaceAll('.', '\\.')).join('.')
}

/** Numeric steps index arrays. */
export function fieldAt(document: unknown, path: FieldPath): FieldValue {
  let value = document
  for (const step of path) {
    if (Array.isArray(value)) {
      const index = /^\d{1,9}$/.test(step) ? Number(step) : -1
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
