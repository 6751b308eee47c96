/**
 * What a proxy tells about the request that its client sent (`chttpd/x_forwarded_host`, `x_forwarded_proto` and
 * `x_forwarded_ssl`). The headers of other clients are ignored, so that nobody can put an address of another server
 * into answers that a cache may keep.
 */
import type { HttpExchange } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'
import { isTrustedProxy } from './client-address.ts'

type Sent = Pick<HttpExchange, 'remoteAddress' | 'headers'>
type HostOptions = Pick<HttpOptions, 'trustedProxies' | 'forwardedHostHeader'>

/** Returns the host, with its port, that the client addressed; undefined when the request names none. */
export function addressedHost(sent: Sent, { forwardedHostHeader, trustedProxies }: HostOptions): string | undefined {
  return fromProxy(sent, forwardedHostHeader, trustedProxies) ?? sent.headers['host']
}

/** Returns scheme and host by which the client addressed this server. */
export function addressedOrigin(
  sent: Sent & Pick<HttpExchange, 'encrypted'>,
  options: HostOptions & Pick<HttpOptions, 'forwardedProtoHeader' | 'forwardedSslHeader'>,
): string {
  const { forwardedProtoHeader, forwardedSslHeader, trustedProxies } = options
  const scheme = fromProxy(sent, forwardedProtoHeader, trustedProxies)
  const secure = scheme === 'https' || (sent.encrypted && scheme === undefined)
    || fromProxy(sent, forwardedSslHeader, trustedProxies) === 'on'
  return `${secure ? 'https' : 'http'}://${addressedHost(sent, options) ?? 'localhost'}`
}

function fromProxy({ headers, remoteAddress }: Sent, name: string, trusted: readonly string[]): string | undefined {
  const value = headers[name]
  return value !== undefined && value !== '' && isTrustedProxy(remoteAddress, trusted) ? value : undefined
}
