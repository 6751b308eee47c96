/**
 * Server administrators (`[admins]`, docs/reference/security.md#authentication). Passwords do not stay in plain text.
 */
import { ApiError } from '@sectional/core'
import { administratorsOf, adminSection, type LiveConfiguration } from './live-configuration.ts'
import { ConfigurationError } from './settings.ts'

/**
 * Replaces every plain-text password by its hash, also in the files, now and at each reload. A reload without an
 * administrator is refused.
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
  for (const [name, password] of admins) {
    if (!isHash(password)) await configuration.replace(adminSection, name, await hash(name, password))
  }
  configuration.beforeReload(async (settings, replaceInFiles) => {
    const reloaded = administratorsOf(settings)
    if (reloaded.length === 0) {
      throw new ApiError('forbidden', 'The configuration files name no administrator, so nothing was reloaded')
    }
    for (const [name, password] of reloaded) {
      if (isHash(password)) continue
      const hashed = await hash(name, password)
      await replaceInFiles(adminSection, name, hashed)
      settings.get(adminSection)!.set(name, hashed)
    }
  })
  return admins.map(([name]) => name)
}
