import type { SourcePosition } from './sandbox.ts'

/** UTF-16 units of the message of a failed call. Functions choose messages, which may pass through logs and links. */
export const failureLengthMax = 2000

/** Returns the beginning of a text, with U+FFFD for half of a surrogate pair at its end. @param length UTF-16 units */
export function cutText(text: string, length: number): string {
  return text.slice(0, length).toWellFormed()
}

/** @param message text of a process that is not trusted, which may have sent something else in its place */
export function shortMessage(message: unknown): string {
  return typeof message === 'string' ? cutText(message, failureLengthMax) : 'no message'
}

/** Returns the message of a failure with its position, as far as it is known. */
export function failureText(message: string, { line, column, module }: SourcePosition): string {
  const parts = [
    ...line === null ? [] : [`line ${line}`], ...column === null ? [] : [`column ${column}`],
    ...module === null ? [] : [`module ${module}`],
  ]
  return parts.length === 0 ? message : `${message} (${parts.join(', ')})`
}
