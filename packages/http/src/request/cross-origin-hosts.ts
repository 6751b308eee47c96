import type { HttpExchange } from '@sectional/runtime'
import type { Configuration } from '../settings/configuration.ts'
import { crossOriginDeclarations, crossOriginHost } from '../settings/cross-origin-options.ts'
import type { CrossOriginValues } from '../settings/cross-origin-options.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { addressedHost } from './forwarded-headers.ts'

/** The dot at the end of a complete name, and the port, which may be empty. */
const afterHost = /\.?(?::\d*)?$/

/** The options of cross-origin requests to one host. */
export type CrossOriginOptions = CrossOriginValues & Pick<HttpOptions, 'crossOriginEnabled'>

/** Returns whether there are origins whose scripts may use the credentials of a user. */
export function allowsCredentials(
  { crossOriginEnabled, crossOriginCredentials, crossOriginOrigins }: CrossOriginOptions,
): boolean {
  return crossOriginEnabled && crossOriginCredentials && crossOriginOrigins.length > 0
    && !crossOriginOrigins.includes('*')
}

/** The settings of `[cors:HOST]`, which can be changed while the node runs. A host has those of `[cors]` otherwise. */
export class CrossOriginHosts {
  readonly #configuration: Configuration
  readonly #options: HttpOptions
  readonly #hosts = new Map<string, Partial<CrossOriginValues>>()

  constructor(configuration: Configuration, options: HttpOptions) {
    this.#configuration = configuration
    this.#options = options
    this.refresh()
  }

  /** Call this when settings have changed. An edited file may have wrong values; they have no effect. */
  refresh(): void {
    this.#hosts.clear()
    for (const [section, settings] of Object.entries(this.#configuration.sections())) {
      const host = crossOriginHost(section)
      if (host !== undefined) this.#hosts.set(host, valuesOf(settings))
    }
  }

  /** Returns the options for requests to the same host. */
  of(exchange: Pick<HttpExchange, 'remoteAddress' | 'headers'>): CrossOriginOptions {
    if (this.#hosts.size === 0) return this.#options
    const host = (addressedHost(exchange, this.#options) ?? '').toLowerCase().replace(afterHost, '')
    const values = this.#hosts.get(host)
    if (values === undefined) return this.#options
    const {
      crossOriginEnabled, crossOriginOrigins, crossOriginCredentials, crossOriginHeaders, crossOriginMethods,
      crossOriginExposedHeaders, crossOriginMaxAgeSeconds,
    } = this.#options
    return {
      crossOriginEnabled, crossOriginOrigins, crossOriginCredentials, crossOriginHeaders, crossOriginMethods,
      crossOriginExposedHeaders, crossOriginMaxAgeSeconds, ...values,
    }
  }
}

function valuesOf(settings: Readonly<Record<string, string>>): Partial<CrossOriginValues> {
  return Object.fromEntries(Object.entries(crossOriginDeclarations).flatMap(([property, option]) => {
    const text = settings[option.key]
    if (text === undefined || text === '') return []
    try {
      return [[property, option.parse(text)]]
    } catch {
      return []
    }
  }))
}
