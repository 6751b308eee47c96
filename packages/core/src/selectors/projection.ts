import { fieldAt, type FieldPath } from './field-path.ts'

/**
 * Reduces a document to the fields at the given paths. Their nesting is kept, except that a step into an array becomes
 * a member of an object. Paths without a value are left out.
 */
export function projectFields(document: unknown, paths: readonly FieldPath[]): Record<string, unknown> {
  const projected: Record<string, unknown> = {}
  for (const path of paths) {
    const field = fieldAt(document, path)
    if (field.kind === 'found') placeField(projected, path, field.value)
  }
  return projected
}

/** Sets the value at a path, and makes the objects on the way. */
export function placeField(target: Record<string, unknown>, path: FieldPath, value: unknown): void {
  let object = target
  for (const step of path.slice(0, -1)) {
    const next = Object.hasOwn(object, step) ? object[step] : undefined
    // A shorter path has already placed the whole value.
    if (next !== undefined && (typeof next !== 'object' || next === null || Array.isArray(next))) return
    object = (next ?? set(object, step, {})) as Record<string, unknown>
  }
  set(object, path.at(-1)!, value)
}

/** Like an assignment, but also correct for the name `__proto__`. */
function set(object: Record<string, unknown>, name: string, value: unknown): unknown {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  return value
}
