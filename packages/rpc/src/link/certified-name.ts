/**
 * Decides whether a certificate is that of a node. The signature of the cluster's authority is not enough: the holder
 * of any such certificate could pose as any node.
 */

/**
 * Names of nodes in certificates are URIs: `sectional:node2@db2.example.org`. A certificate without any is that of all
 * nodes whose names end with `@` and one of its hosts or addresses.
 */
const nodePrefix = 'URI:sectional:'
const hostPrefix = 'DNS:'
const addressPrefix = 'IP Address:'
/** The maximum number of names that a message lists. */
const shownMax = 4

/**
 * Checks the name with which a peer has introduced itself.
 *
 * @param node the name of the peer, `name@host`
 * @param names the names in its certificate, as `Connection.certifiedNames` has them
 * @returns one sentence that says which name was expected and which ones the certificate has; null when the certificate
 * is that of the node
 */
export function certificateProblem(node: string, names: readonly string[]): string | null {
  const expected = names.some(name => name.startsWith(nodePrefix)) ? nodePrefix + node : hostOf(node)
  if (names.some(name => canonical(name) === expected)) return null
  const shown = names.length === 0 ? 'nothing' : names.slice(0, shownMax).join(', ')
  const more = names.length > shownMax ? ` and ${names.length - shownMax} more` : ''
  return `the certificate of ${node} must name ${expected}, it names ${shown}${more}`
}

/** Returns the host in the name of a node, as a certificate has it. */
function hostOf(node: string): string {
  const host = node.slice(node.lastIndexOf('@') + 1)
  const isAddress = host.includes(':') || /^\d+(?:\.\d+){3}$/.test(host)
  return canonical((isAddress ? addressPrefix : hostPrefix) + host)
}

/** Returns a name in the form in which equal names are equal texts. A name with a wildcard equals no host. */
function canonical(name: string): string {
  if (name.startsWith(hostPrefix)) return hostPrefix + name.slice(hostPrefix.length).toLowerCase()
  if (!name.startsWith(addressPrefix) || !name.includes(':', addressPrefix.length)) return name
  // The parser of URLs shortens addresses of IPv6.
  const url = `http://[${name.slice(addressPrefix.length)}]`
  return URL.canParse(url) ? addressPrefix + new URL(url).hostname : name
}
