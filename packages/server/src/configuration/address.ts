/** Network addresses in the configuration: `host:port`, or a host alone. */
import type { OptionType } from '@sectional/core/options'

export interface Address { readonly host: string; readonly port: number }

/** Longest name of a host (RFC 1035). */
const hostLengthMax = 253
/** Underscores are not allowed in names of hosts, but container networks use them. */
const labelForm = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i
const ipv4Form = /^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/
const zoneForm = /%[\w.-]{1,32}$/

/** The word of CouchDB for all addresses. */
const allAddresses = 'any'
const allAddressesHost = '::'
/** The hosts that stand for all addresses of the machine. */
export const wildcardHosts: readonly string[] = ['0.0.0.0', allAddressesHost]

const listeningHosts = 'an IPv4 address, an IPv6 address without brackets, or the name of a host is allowed, without a '
  + 'port; 0.0.0.0 is all addresses of IPv4, and :: or any all of both'

/** The host on which a listener accepts connections. */
export const host: OptionType<string> = {
  kind: 'IP address, name of a host, or any',
  parse: text => {
    if (text === allAddresses) return allAddressesHost
    if (!isHost(text)) throw new Error(`only ${listeningHosts}`)
    return text
  },
  format: value => value,
}

/** A host, or empty text. */
export const optionalHost: OptionType<string> = { ...host, parse: text => text === '' ? '' : host.parse(text) }

/** An address as `host:port`; null as empty text. */
export const address: OptionType<Address | null> = {
  kind: 'host:port',
  parse: text => text === '' ? null : parseAddress(text),
  format: value => value === null ? '' : formatAddress(value),
}

/** @throws Error with the allowed format */
export function parseAddress(text: string): Address {
  const [, bracketed, plain, portText] = /^(?:\[([^[\]]+)\]|([^[\]]+?)):(\d{1,5})$/.exec(text) ?? []
  const [named, port] = [bracketed ?? plain, Number(portText)]
  if (named === undefined || port > 65535 || !isHost(named) || (bracketed !== undefined && !named.includes(':'))) {
    throw new Error('only host:port with a port up to 65535 is allowed, where the host is an IPv4 address, an IPv6 '
      + 'address in brackets, or the name of a host')
  }
  return { host: named, port }
}

export function formatAddress({ host: named, port }: Address): string {
  return `${named.includes(':') ? `[${named}]` : named}:${port}`
}

/** The words `any` and `all` stand for all addresses in other programs, and would be looked up as names here. */
function isHost(text: string): boolean {
  if (text.includes(':')) return URL.canParse(`http://[${text.replace(zoneForm, '')}]/`)
  const labels = text.replace(/\.$/, '').split('.')
  if (/^\d+$/.test(labels.at(-1)!)) return ipv4Form.test(text)
  return text.length <= hostLengthMax && !/^(?:any|all)$/i.test(text) && labels.every(label => labelForm.test(label))
}
