/**
 * Server administrators (`[admins]`, docs/reference/security.md#authentication). Passwords do not stay in plain text.
 */
import { ApiError } from '@sectional/core'
import { administratorsOf, adminSection, type LiveConfiguration, type ReplaceValue } from './live-configuration.ts'
import { ConfigurationError } from './settings.ts'

/**
 * Replaces every plain-text password by its hash, also in the files and where another one overrides it, now and at each
 * reload. A reload without an administrator is refused.
 *
 * @param hash returns the text that CouchDB stores, `-pbkdf2:sha256-{key},{salt},{iterations}`
 * @param isHash whether a text is one of CouchDB's hash formats
 * @returns the names of the administrators
 * @throws ConfigurationError when there is no administrator
 */
export async function prepareAdministrators(
  configuration: LiveConfiguration,
  isHash: (text: string) => boolean,
  hash: (name: string, password: string) => Promise<string>,
): Promise<readonly string[]> {
  const admins = administratorsOf(configuration.settings())
  if (admins.length === 0) {
    throw new ConfigurationError('No administrator is configured, so no client could use this node. Add a section '
      + '[admins] with a line NAME = PASSWORD to local.ini (the password is replaced by its hash), or set '
      + 'SECTIONAL_ADMINS__NAME=PASSWORD.')
  }
  await configuration.replace(adminSection, hashing(isHash, hash))
  configuration.beforeReload(async (settings, replaceInFiles) => {
    const reloaded = administratorsOf(settings)
    if (reloaded.length === 0) {
      throw new ApiError('forbidden', 'The configuration files name no administrator, so nothing was reloaded')
    }
    const replace = hashing(isHash, hash)
    await replaceInFiles(adminSection, replace)
    for (const [name, password] of reloaded) settings.get(adminSection)!.set(name, await replace(name, password))
  })
  return admins.map(([name]) => name)
}

/** Hashes each password once, because a second hash can have another salt. */
function hashing(
  isHash: (text: string) => boolean, hash: (name: string, password: string) => Promise<string>,
): ReplaceValue {
  const hashes = new Map<string, Promise<string>>()
  return (name, password) => {
    // An empty entry removes the administrator of another file.
    if (password === '' || isHash(password)) return Promise.resolve(password)
    const key = JSON.stringify([name, password])
    const hashed = hashes.get(key) ?? hash(name, password)
    hashes.set(key, hashed)
    return hashed
  }
}
