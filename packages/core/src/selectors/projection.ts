import { fieldAt, type FieldPath } from './field-path.ts'

/**
 * A document cut down to the fields at the paths; their nesting stays, a step into an array becomes a member.
 * Paths that lead nowhere are left out.
 */
export function projectFields(document: unknown, paths: readonly FieldPath[]): Record<string, unknown> {
  const projected: Record<string, unknown> = {}
  for (const path of paths) {
    const field = fieldAt(document, path)
    if (field.kind === 'found') place(projected, path, field.value)
  }
  return projected
}

function place(target: Record<string, unknown>, path: FieldPath, value: unknown): void {
  let object = target
  for (const step of path.slice(0, -1)) {
    const next = Object.hasOwn(object, step) ? object[step] : undefined
    // A wider path was placed before.
    if (next !== undefined && (typeof next !== 'object' || next === null || Array.isArray(next))) return
    object = (next ?? set(object, step, {})) as Record<string, unknown>
  }
  set(object, path.at(-1)!, value)
}

/** Like an assignment, for every name: `__proto__` too. */
function set(object: Record<string, unknown>, name: string, value: unknown): unknown {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  return value
}
