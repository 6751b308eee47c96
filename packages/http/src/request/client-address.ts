/** The address of the client, also behind a proxy (`chttpd/peer_header`). */
import type { HttpExchange } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'

const ipv4Range = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/
const mappedPrefix = '::ffff:'
/** Longest text that is taken for an address: an IPv6 address with a zone. */
const addressLengthMax = 64

/**
 * Returns the address of the client that sent a request. Each proxy adds the address of its client at the end of the
 * header, so the last one that is not a trusted proxy is that of the client; those before it may be invented.
 */
export function clientAddress(
  { remoteAddress, headers }: Pick<HttpExchange, 'remoteAddress' | 'headers'>,
  { peerHeader, trustedProxies }: Pick<HttpOptions, 'peerHeader' | 'trustedProxies'>,
): string {
  const peer = plain(remoteAddress)
  const header = peerHeader === undefined ? undefined : headers[peerHeader.toLowerCase()]
  if (header === undefined || !isTrusted(peer, trustedProxies)) return peer
  const named = header.split(',').map(text => plain(text.trim()))
    .filter(address => address !== '' && address.length <= addressLengthMax)
  return named.findLast(address => !isTrusted(address, trustedProxies)) ?? named[0] ?? peer
}

/** Returns an IPv4 address in its own form when it is written as an IPv6 address. */
function plain(address: string): string {
  return address.toLowerCase().startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address
}

function isTrusted(address: string, trusted: readonly string[]): boolean {
  return trusted.some(entry => {
    const range = ipv4Range.exec(entry)
    if (range === null) return entry === address
    const bits = Number(range[2])
    const [network, own] = [numberOf(range[1]!), numberOf(address)]
    if (network === null || own === null || bits > 32) return false
    const size = 2 ** (32 - bits)
    return Math.floor(network / size) === Math.floor(own / size)
  })
}

/** Returns an IPv4 address as a number, and null for other texts. */
function numberOf(address: string): number | null {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(address)) return null
  const bytes = address.split('.').map(Number)
  return bytes.every(byte => byte < 256) ? bytes.reduce((sum, byte) => sum * 256 + byte, 0) : null
}
