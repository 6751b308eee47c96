const mappedPrefix = '::ffff:'
/** Behind it, a translator gives each IPv4 client an address of one network (RFC 6052). */
const translatedPrefix = '64:ff9b::'
/** The groups of 16 bits of an IPv6 address that name its network. */
const networkGroups = 4
const groups = 8

/**
 * Returns for whom an address stands when clients share something fairly, or are counted. A client with IPv6 usually
 * has a whole network of 64 bits (RFC 6177), and can use another address of it for each connection, so the network
 * stands for all of them. An IPv4 address stands for itself, also when it is part of an IPv6 address.
 */
export function clientNetwork(address: string): string {
  if (!address.includes(':') || address.startsWith(translatedPrefix)) return address
  if (address.startsWith(mappedPrefix) && address.includes('.')) return address.slice(mappedPrefix.length)
  const [left = '', right] = address.replace(/%.*$/, '').split('::')
  const first = left === '' ? [] : left.split(':')
  const last = right === undefined || right === '' ? [] : right.split(':')
  const zeros = Math.max(0, groups - first.length - last.length - (last.at(-1)?.includes('.') ? 1 : 0))
  return `${[...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, networkGroups).join(':')}::/64`
}
