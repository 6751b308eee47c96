/**
 * Values that the bodies of many operations have, so that edits of one revision have equal content: their revisions are
 * then equal too, and only one of the edits may be acknowledged. The rule of `value-rule` does not refuse them.
 */
export const sharedValues = ['same.1', 'same.2'] as const

/** Returns whether the value does not identify one operation. */
export function isShared(value: string | undefined): boolean {
  return sharedValues.some(shared => shared === value)
}
