/** The addresses on which a node listens, when they are changed while it runs. */
import { ApiError } from '@sectional/core'
import type { HttpListener } from '@sectional/runtime'
import { wildcardHosts } from './address.ts'
import type { LiveConfiguration } from './live-configuration.ts'
import { nodeDeclarations } from './node-declarations.ts'

const { clusterHost, clusterPort, httpHost, httpPort } = nodeDeclarations
const api = { host: httpHost, port: httpPort }
const cluster = { host: clusterHost, port: clusterPort }

/** Returns the error of a listener with advice. */
export function addressProblem(error: Error): Error {
  return new Error(`${error.message}. Choose an address of this machine (0.0.0.0: all of IPv4, ::: all of both) and a `
    + 'port that nothing else listens on.', { cause: error })
}

/**
 * Refuses changes over HTTP after which the node could not start: the listeners of the API and of the cluster would
 * have the same port, or the node cannot listen on the address of the cluster, which applies at the next start. That
 * address is tried at once; the values with which the node was started are always accepted. The address of the API
 * applies before the change is stored, so it is not tried here.
 */
export function refuseUnusableAddresses(configuration: LiveConfiguration, http: HttpListener): void {
  const saved = ({ section, key, default: usual }: typeof httpHost | typeof httpPort): string =>
    configuration.saved(section, key) ?? String(usual)
  const started = new Map(Object.values(cluster).map(each => [each.name, saved(each)]))
  configuration.beforeSet(async (section, key, value) => {
    const name = `${section}/${key}`
    const changed = [api, cluster].find(({ host, port }) => [host.name, port.name].includes(name))
    if (changed === undefined) return
    const refusal = (problem: string): ApiError => new ApiError('bad_request', `${name} = ${JSON.stringify(value)}: `
      + `the node could not start again. ${problem} Nothing was changed.`)
    const after = ({ host, port }: typeof changed): { readonly host: string; readonly port: number } => ({
      host: host.parse(host.name === name ? value : saved(host)),
      port: Number(port.name === name ? value : saved(port)),
    })
    const unchanged = changed === api ? cluster : api
    const [own, other] = [after(changed), after(unchanged)]
    if (own.port !== 0 && own.port === other.port && overlap(own.host, other.host)) {
      throw refusal(`Port ${own.port} is that of ${unchanged.port.name}. Choose another port.`)
    }
    if (changed === api || value === started.get(name)) return
    try {
      const probe = await http.listen({ host: own.host, port: changed.port.name === name ? own.port : 0 }, () => {})
      await probe.close(0)
    } catch (error) {
      throw refusal(addressProblem(error as Error).message)
    }
  })
}

function overlap(host: string, other: string): boolean {
  return host === other || wildcardHosts.includes(host) || wildcardHosts.includes(other)
}
