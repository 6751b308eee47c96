/** The addresses on which a node listens after its next start, when they are changed over HTTP. */
import { ApiError } from '@sectional/core'
import type { HttpListener } from '@sectional/runtime'
import type { LiveConfiguration } from './live-configuration.ts'
import { nodeDeclarations } from './node-declarations.ts'

const { clusterHost, clusterPort, httpHost, httpPort } = nodeDeclarations
const listeners = [{ host: httpHost, port: httpPort }, { host: clusterHost, port: clusterPort }]
/** The addresses that stand for all addresses of the machine. */
const wildcards = ['0.0.0.0', '::']

/**
 * Refuses changes over HTTP after which the node could not start, because it could not listen: the host is not an
 * address of this machine, or another process or listener has the port. A new host or port is tried at once. The values
 * with which the node was started are always accepted.
 */
export function refuseUnusableAddresses(configuration: LiveConfiguration, http: HttpListener): void {
  const saved = ({ section, key, default: usual }: typeof httpHost | typeof httpPort): string =>
    configuration.get(section, key) ?? String(usual)
  const started = new Map(listeners.flatMap(({ host, port }) => [host, port]).map(each => [each.name, saved(each)]))
  configuration.beforeSet(async (section, key, value) => {
    const name = `${section}/${key}`
    const changed = listeners.find(({ host, port }) => [host.name, port.name].includes(name))
    if (changed === undefined || value === started.get(name)) return
    const refusal = (problem: string): ApiError => new ApiError('bad_request', `${name} = ${JSON.stringify(value)}: `
      + `the node could not start again. ${problem} Nothing was changed.`)
    const after = ({ host, port }: typeof changed): { readonly host: string; readonly port: number } => ({
      host: host.parse(host.name === name ? value : saved(host)),
      port: Number(port.name === name ? value : saved(port)),
    })
    const unchanged = listeners.find(each => each !== changed)!
    const [own, other] = [after(changed), after(unchanged)]
    if (own.port !== 0 && own.port === other.port && overlap(own.host, other.host)) {
      throw refusal(`Port ${own.port} is that of ${unchanged.port.name}. Choose another port.`)
    }
    try {
      const probe = await http.listen({ host: own.host, port: changed.port.name === name ? own.port : 0 }, () => {})
      await probe.close(0)
    } catch (error) {
      throw refusal(`${(error as Error).message}. Choose an address of this machine (0.0.0.0: all of IPv4, ::: all of `
        + 'both) and a port that nothing else listens on.')
    }
  })
}

function overlap(host: string, other: string): boolean {
  return host === other || wildcards.includes(host) || wildcards.includes(other)
}
