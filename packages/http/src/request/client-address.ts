/** The address of the client, also behind a proxy (`chttpd/peer_header`). */
import type { HttpExchange } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'

const byte = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const ipv4 = `${byte}(?:\\.${byte}){3}`
const ipv4Form = new RegExp(`^${ipv4}$`)
const ipv4Range = new RegExp(`^(${ipv4})/(\\d{1,2})$`)
/** An address as proxies write it: IPv6 in brackets or without, with a zone, and with the port of the connection. */
const namedForm = new RegExp(`^(?:(${ipv4})(?::\\d{1,5})?|\\[([^[\\]]+)\\](?::\\d{1,5})?|([^[\\]]+))$`)
const ipv6Form = /^([0-9a-f:.]{2,45})(?:%[\w.-]{1,32})?$/i
const mappedPrefix = '::ffff:'
const mappedForm = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/

/**
 * Returns the address of the client that sent a request. Each proxy adds the address of its client at the end of the
 * header, so the last one that is not a trusted proxy is that of the client; those before it may be invented, and so
 * may those before a text that is no address. Ports are left out, since a client has another one for each connection.
 */
export function clientAddress(
  { remoteAddress, headers }: Pick<HttpExchange, 'remoteAddress' | 'headers'>,
  { peerHeader, trustedProxies }: Pick<HttpOptions, 'peerHeader' | 'trustedProxies'>,
): string {
  const peer = plain(remoteAddress)
  const header = peerHeader === undefined ? undefined : headers[peerHeader.toLowerCase()]
  if (header === undefined || !isTrusted(peer, trustedProxies)) return peer
  let client = peer
  for (const text of header.split(',').map(item => item.trim()).reverse()) {
    if (text === '') continue
    const address = ipAddress(text)
    if (address === null) return client
    client = address
    if (!isTrusted(address, trustedProxies)) return client
  }
  return client
}

/** Returns whether the address of a connection is that of a trusted proxy. */
export function isTrustedProxy(remoteAddress: string, trusted: readonly string[]): boolean {
  return isTrusted(plain(remoteAddress), trusted)
}

/** Returns an IPv4 address, which sockets for both families write as an IPv6 address, in its own form. */
function plain(address: string): string {
  return address.startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address
}

/**
 * Returns the one form of an address that is written in many, without its port and zone; null for other texts. An IPv4
 * address that is written as an IPv6 address has its own form.
 */
function ipAddress(text: string): string | null {
  const [, plain, bracketed, bare] = namedForm.exec(text) ?? []
  if (plain !== undefined) return plain
  const [, address] = ipv6Form.exec(bracketed ?? bare ?? '') ?? []
  const host = address?.includes(':') ? URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) : undefined
  if (host === undefined) return null
  const [, high, low] = mappedForm.exec(host) ?? []
  if (high === undefined || low === undefined) return host
  return [high, low].flatMap(half => [Number.parseInt(half, 16) >> 8, Number.parseInt(half, 16) & 255]).join('.')
}

function isTrusted(address: string, trusted: readonly string[]): boolean {
  return trusted.some(entry => {
    const range = ipv4Range.exec(entry)
    if (range === null) return entry === address || ipAddress(entry) === address
    const bits = Number(range[2])
    const [network, own] = [numberOf(range[1]!), numberOf(address)]
    if (network === null || own === null || bits > 32) return false
    const size = 2 ** (32 - bits)
    return Math.floor(network / size) === Math.floor(own / size)
  })
}

/** Returns an IPv4 address as a number, and null for other texts. */
function numberOf(address: string): number | null {
  return ipv4Form.test(address) ? address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) : null
}
