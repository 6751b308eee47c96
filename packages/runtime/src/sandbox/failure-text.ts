import type { SourcePosition } from './sandbox.ts'

/** Returns the message of a failure with its position, as far as it is known. */
export function failureText(message: string, { line, column, module }: SourcePosition): string {
  const parts = [
    ...line === null ? [] : [`line ${line}`], ...column === null ? [] : [`column ${column}`],
    ...module === null ? [] : [`module ${module}`],
  ]
  return parts.length === 0 ? message : `${message} (${parts.join(', ')})`
}
