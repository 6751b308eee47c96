/** The attribute SameSite of the session cookie (`chttpd_auth/same_site`). */
import { hideCredentials } from '@sectional/core/options'
import type { Log } from '@sectional/runtime'
import { allowsCredentials, type CrossOriginOptions } from '../request/cross-origin-hosts.ts'
import type { HttpOptions } from '../settings/http-options.ts'

const attributes: ReadonlyMap<string, string> = new Map([['none', 'None'], ['lax', 'Lax'], ['strict', 'Strict']])
const auto = 'auto'
const validValues = [...attributes.keys(), auto]
/** Characters of another value that are logged. */
const loggedMax = 100

/** Returns the attribute, or undefined for a cookie without it. */
export function sameSiteOf(
  { sameSite }: Pick<HttpOptions, 'sameSite'>, crossOrigin: CrossOriginOptions,
): string | undefined {
  if (sameSite !== auto) return attributes.get(sameSite)
  return allowsCredentials(crossOrigin) ? undefined : attributes.get('lax')
}

/** Logs a warning when the option gets a value that is none of the valid ones. An empty value is not meant as one. */
export class SameSiteWarning {
  readonly #options: Pick<HttpOptions, 'sameSite'>
  readonly #log: Log
  /** The value that was last seen. */
  #seen = ''

  constructor(options: Pick<HttpOptions, 'sameSite'>, log: Log) {
    this.#options = options
    this.#log = log
    this.check()
  }

  /** Call this when the configuration has changed. */
  check(): void {
    const { sameSite } = this.#options
    if (sameSite === this.#seen) return
    this.#seen = sameSite
    if (sameSite === '' || validValues.includes(sameSite)) return
    this.#log.warn(
      {
        option: 'chttpd_auth/same_site', value: hideCredentials(sameSite).slice(0, loggedMax),
        valid: validValues.join(', '),
      },
      'a value that is not valid is ignored: session cookies have no SameSite attribute',
    )
  }
}
