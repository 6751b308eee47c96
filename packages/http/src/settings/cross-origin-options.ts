/** Options of cross-origin requests of browsers. A section `[cors:HOST]` sets them for the requests to one host. */
import { converted, flag, integer, list, option, type OptionType, type OptionValues } from '@sectional/core/options'
import { optionalHeaderValue } from './header-types.ts'

/** `*`, or what browsers send as Origin: scheme, host and port (RFC 6454, 6.2), `file://`, or `null`. */
const origin = /^(?:\*|null|file:\/\/|[a-z][a-z\d+.-]*:\/\/(?:[\w.~%!$&'()+;=-]+|\[[\d.:a-f]+\])(?::\d{1,5})?)$/i

const origins: OptionType<readonly string[]> = {
  kind: 'comma separated list of origins',
  parse: given => list.parse(given).map(item => {
    if (origin.test(item)) return item
    throw new Error(`${item} is not an origin, which browsers send as scheme, host and port, without a path: `
      + 'write https://app.example.org or http://localhost:8080, or * for every origin')
  }),
  format: items => list.format(items),
}

const defaultPort = /^(https:.*):443$|^(http:.*):80$/

/** Returns an origin in lower case and without the default port of its scheme, which browsers leave out. */
export function comparableOrigin(origin: string): string {
  const text = origin.toLowerCase()
  const [, https, http] = defaultPort.exec(text) ?? []
  return https ?? http ?? text
}

const lowerCase = (names: readonly string[]): readonly string[] => names.map(name => name.toLowerCase())

export const crossOriginDeclarations = {
  /** Converted by `comparableOrigin`. */
  crossOriginOrigins: converted(option('cors/origins', origins, {
    default: [],
    effect: 'live',
    help: 'Origins that may read answers, with scheme and port; * allows every origin. null is that of local files, '
      + 'and every site can load a page with it: do not list it while credentials is true.',
  }), items => items.map(comparableOrigin)),

  crossOriginCredentials: option('cors/credentials', flag, {
    default: false,
    effect: 'live',
    help: 'Let browsers send credentials. It has no effect with the origin *.',
  }),

  /** Converted to lower case. These headers are allowed in addition to those that always are. */
  crossOriginHeaders: converted(option('cors/headers', list, {
    default: [],
    effect: 'live',
    help: 'Request headers that are allowed, in addition to those that are always allowed.',
  }), lowerCase),

  crossOriginMethods: option('cors/methods', optionalHeaderValue, {
    default: undefined,
    effect: 'live',
    help: 'Allowed methods, comma separated. Unset: all.',
  }),

  crossOriginExposedHeaders: option('cors/exposed_headers', optionalHeaderValue, {
    default: undefined,
    effect: 'live',
    help: 'Headers that scripts may read, comma separated. Unset: the list of CouchDB.',
  }),

  crossOriginMaxAgeSeconds: option('cors/max_age', integer({ min: 0, max: 86_400, unit: 'seconds' }), {
    default: 600,
    effect: 'live',
    help: 'Time for which browsers may cache the answer to a preflight request.',
  }),
}

export type CrossOriginValues = OptionValues<typeof crossOriginDeclarations>

const hostPrefix = 'cors:'

/** Returns the host of a section `[cors:HOST]` in lower case; undefined for other sections. */
export function crossOriginHost(section: string): string | undefined {
  return section.startsWith(hostPrefix) ? section.slice(hostPrefix.length).toLowerCase() : undefined
}

/** Checks a setting of a section `[cors:HOST]`. @throws Error whose message says what is allowed */
export function checkCrossOriginHost(key: string, text: string): void {
  const options = Object.values(crossOriginDeclarations)
  const option = options.find(each => each.key === key)
  if (option === undefined) throw new Error(`only the options of [cors] are allowed: ${options.map(each => each.key)}`)
  if (text !== '') option.parse(text)
}
