/**
 * Names that options had in earlier versions of CouchDB. They are read where the present names are not set
 * (docs/configuration.md#names-of-earlier-versions).
 */
import type { SettingName } from './setting-names.ts'

/** The sections with former names. Where several set the same option, the first one counts. */
export const formerSections = ['chttpd_auth', 'couch_httpd_auth', 'service_httpd_auth', 'httpd'] as const

/** These options have moved twice: from `couch_httpd_auth` to `chttpd_auth`, and to `chttpd`. */
const movedTwice = new Set(['require_valid_user', 'require_valid_user_except_for_up'])

/** In `[httpd]` these were options of another listener, for other nodes of the cluster and for repairs. */
const ofOtherListener = new Set(['bind_address', 'port', 'authentication_handlers'])

/** Returns the present name of a setting that has a former one, which need not be a declared option; null otherwise. */
export function presentName(section: string, key: string): SettingName | null {
  switch (section) {
    case 'chttpd_auth': return movedTwice.has(key) ? { section: 'chttpd', key } : null
    case 'couch_httpd_auth': case 'service_httpd_auth':
      return { section: movedTwice.has(key) ? 'chttpd' : 'chttpd_auth', key }
    case 'httpd': return ofOtherListener.has(key) ? null : { section: 'chttpd', key }
    default: return null
  }
}

/** Returns all names of the setting with a given name: that name, the present one, and the former ones. */
export function namesOf(section: string, key: string): readonly SettingName[] {
  const present = presentName(section, key) ?? { section, key }
  const former = formerSections.map(each => ({ section: each, key }))
    .filter(({ section: each }) => presentName(each, key)?.section === present.section)
  return [{ section, key }, present, ...former]
}
