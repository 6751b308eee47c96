/** Shown instead of a secret. */
export const hiddenValue = '****'

/**
 * Replaces what may be a user name and a password in a URL: the text from the first colon to the last `@`. A password
 * that is not encoded may contain any character, also those that end it for a parser of URLs.
 */
export function hideCredentials(text: string): string {
  return text.replace(/:(\/\/)?.*@/s, `:$1${hiddenValue}@`)
}
