import type { HttpExchange } from '@sectional/runtime'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { addressedHost } from './forwarded-headers.ts'
import { namesTwoHosts } from './request-path.ts'
import { RewrittenExchange } from './rewritten-exchange.ts'
import {
  bySpecificity, parseVirtualHost, virtualHostsSection, virtualTarget, type VirtualHost,
} from './virtual-host.ts'

/** The header with which handlers see the target that the client sent to a virtual host. */
export const virtualHostPath = 'x-couchdb-vhost-path'

type VirtualHostOptions = Pick<HttpOptions, 'virtualHostGlobals' | 'forwardedHostHeader' | 'trustedProxies'>

/** The rules of `[vhosts]`, which can be changed while the node runs. */
export class VirtualHosts {
  readonly #configuration: Configuration
  readonly #options: VirtualHostOptions
  #rules: readonly VirtualHost[] = []

  constructor(configuration: Configuration, options: VirtualHostOptions) {
    this.#configuration = configuration
    this.#options = options
    this.refresh()
  }

  /** Call this when settings have changed. An edited file may have rules that are malformed; they have no effect. */
  refresh(): void {
    const rules = Object.entries(this.#configuration.sections()[virtualHostsSection] ?? {})
    this.#rules = bySpecificity(rules.flatMap(([rule, target]) => {
      try {
        return [parseVirtualHost(rule, target)]
      } catch {
        return []
      }
    }))
  }

  /** Returns the request as it is handled: the given one, or one with the path to which its host is mapped. */
  resolve(exchange: HttpExchange): HttpExchange {
    if (this.#rules.length === 0) return exchange
    const { method, headers, target } = exchange
    // It will be refused.
    if (namesTwoHosts(target, headers['host'])) return exchange
    const host = addressedHost(exchange, this.#options)
    const mapped = virtualTarget(this.#rules, host, target, this.#options.virtualHostGlobals)
    if (mapped === null) return exchange
    return new RewrittenExchange(exchange, {
      method, target: mapped, headers: { ...headers, [virtualHostPath]: target }, body: null,
    })
  }
}
