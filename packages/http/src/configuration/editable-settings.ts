/** Which settings the HTTP API may change (docs/configuration.md#what-http-must-not-change). */
import { ApiError } from '@sectional/core'
import { namesOf } from '../settings/former-names.ts'
import { httpDeclarations, type HttpOptions } from '../settings/http-options.ts'
import { includesSetting, parseSettingNames } from '../settings/setting-names.ts'

/** Sections that name programs and handlers. They can be read but not changed over HTTP. */
const blockedSections = new Set([
  'daemons', 'external', 'httpd_design_handlers', 'httpd_db_handlers', 'httpd_global_handlers',
  'native_query_servers', 'os_daemons', 'query_servers', 'feature_flags',
])

/**
 * Options that are changed in files only are refused by `Configuration`, which knows all declarations.
 *
 * @throws ApiError `forbidden` for a blocked section or an option of the blacklist, `modification_not_allowed` for an
 *   option that the whitelist does not list
 */
export function checkEditable(
  options: Pick<HttpOptions, 'configWhitelist' | 'configBlacklist'>, section: string, key: string,
): void {
  if (blockedSections.has(section)) {
    throw new ApiError('forbidden', 'Config section blacklisted for modification over HTTP API.')
  }
  // The list protects a setting by each of its names, because each of them may be the one that has an effect.
  if (namesOf(section, key).some(name => includesSetting(options.configBlacklist, name.section, name.key))) {
    throw new ApiError('forbidden', 'Config key blacklisted for modification over HTTP API.')
  }
  const whitelist = options.configWhitelist
  if (whitelist === undefined || whitelist.trim() === '') return
  const allowed = parseSettingNames(whitelist) ?? [httpDeclarations.configWhitelist]
  if (!includesSetting(allowed, section, key)) throw new ApiError('modification_not_allowed')
}
