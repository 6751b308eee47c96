/**
 * Decides which values of settings are shown and logged (docs/configuration.md#secrets). Declarations say it for the
 * settings that are declared. Any other name may be a misspelt one, or one of CouchDB that has no effect here.
 */
import { hiddenValue, hideCredentials } from '@sectional/core/options'
import { distance } from 'fastest-levenshtein'
import { declaredOptions, findOpenSection, findOption } from './declarations.ts'

/** Parts of undeclared sections and keys whose values are hidden. */
const secretWords = ['admin', 'credential', 'key', 'pass', 'private', 'pwd', 'salt', 'secret', 'token']
const secretForm = new RegExp(secretWords.join('|'), 'i')
/** An undeclared key that differs in at most this many letters from the key of a declared secret is hidden. */
const typingErrorsMax = 2

/** Characters of a value that an error shows. */
const shownMax = 100

const secretKeys = declaredOptions.filter(({ secret }) => secret).map(({ key }) => key)

/** Whether the value of a setting is a secret, which must not be shown or logged. */
export function isSecretSetting(section: string, key: string): boolean {
  const declared = findOption(section, key) ?? findOpenSection(section)
  if (declared !== undefined) return declared.secret
  return secretForm.test(section) || secretForm.test(key)
    || secretKeys.some(known => distance(key.toLowerCase(), known) <= typingErrorsMax)
}

/**
 * Whether a changed value may be logged. Values of undeclared settings never are: no name tells for certain what they
 * contain.
 */
export function isLoggedSetting(section: string, key: string): boolean {
  if (isSecretSetting(section, key)) return false
  return findOption(section, key) !== undefined || findOpenSection(section)?.logged === true
}

/** Returns a value for errors. Secrets are hidden, and so are user names and passwords in URLs. */
export function shownSetting(section: string, key: string, value: string): string {
  return isLoggedSetting(section, key) ? JSON.stringify(hideCredentials(value).slice(0, shownMax)) : hiddenValue
}
