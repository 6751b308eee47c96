/** A network on loopback, in which a proxy in front of each node blocks paths. It needs no rights. */
import type { ClusterNetwork, MayPass, NodePlace } from './cluster-network.ts'
import { freePorts } from './free-ports.ts'
import { LinkProxy } from './link-proxy.ts'

export class ProxyNetwork implements ClusterNetwork {
  readonly places: readonly NodePlace[]
  #proxies: readonly LinkProxy[] = []
  #mayPass: MayPass = () => true

  private constructor(places: readonly NodePlace[]) {
    this.places = places
  }

  static async create(nodes: number): Promise<ProxyNetwork> {
    const ports = await freePorts(nodes * 3)
    return new ProxyNetwork(Array.from({ length: nodes }, (_, index) => {
      const [httpPort, clusterPort, advertisedPort] = ports.slice(index * 3, index * 3 + 3) as [number, number, number]
      return { address: '127.0.0.1', httpPort, clusterPort, advertisedPort, launcher: [] }
    }))
  }

  async open(processIds: () => ReadonlyMap<number, number>): Promise<void> {
    this.#proxies = this.places.map(({ clusterPort, advertisedPort }, index) => new LinkProxy({
      listenPort: advertisedPort, targetPort: clusterPort, target: index + 1, processIds,
      mayPass: (from, to) => this.#mayPass(from, to),
    }))
    for (const proxy of this.#proxies) await proxy.open()
  }

  update(mayPass: MayPass): void {
    this.#mayPass = mayPass
    for (const proxy of this.#proxies) proxy.update()
  }

  async close(): Promise<void> {
    for (const proxy of this.#proxies) await proxy.close()
  }
}
