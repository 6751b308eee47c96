/** Network addresses, as `host:port` in the configuration. */
import type { OptionType } from '@sectional/core/options'

export interface Address { readonly host: string; readonly port: number }

/** An address as `host:port`; null as empty text. */
export const address: OptionType<Address | null> = {
  kind: 'host:port',
  parse: text => text === '' ? null : parseAddress(text),
  format: value => value === null ? '' : formatAddress(value),
}

/** @throws Error with the allowed format */
export function parseAddress(text: string): Address {
  const [, host, portText] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  const port = Number(portText)
  if (host === undefined || port > 65535) throw new Error('only host:port with a port up to 65535 is allowed')
  return { host, port }
}

export function formatAddress({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
