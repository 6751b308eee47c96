/**
 * A network of Linux network namespaces: each node has an interface of its own behind a bridge, and packets are lost
 * where a path is blocked. It must run in a network namespace of its own (`runsInNamespace`), because it creates
 * interfaces.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import type { ClusterNetwork, MayPass, NodePlace } from './cluster-network.ts'

/** Nobody has this hardware address. */
const nowhere = '02:00:00:00:00:ff'
const device = 'eth0'
const bridge = 'nodes'
const prefix = '10.213.0.'
/** Every node has its own address, so all use the same ports. */
const ports = { httpPort: 5984, clusterPort: 15984, advertisedPort: 15984 }

function ip(...words: string[]): string {
  return execFileSync('ip', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

export class NamespaceNetwork implements ClusterNetwork {
  readonly places: readonly NodePlace[]
  readonly #names: readonly string[]
  /** Blocked paths, such as `1 2`. */
  readonly #blocked = new Set<string>()

  constructor(nodes: number) {
    this.#names = Array.from({ length: nodes }, (_, index) => `sectional-${process.pid}-${index + 1}`)
    this.places = this.#names.map((name, index) => (
      { address: addressOf(index + 1), ...ports, launcher: ['ip', 'netns', 'exec', name] }))
  }

  async open(): Promise<void> {
    // The names outlive the process.
    process.once('exit', this.#removeNames)
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', bridge, 'type', 'bridge')
    ip('addr', 'add', `${prefix}254/24`, 'dev', bridge)
    ip('link', 'set', bridge, 'up')
    for (const [index, name] of this.#names.entries()) {
      const port = `node${index + 1}`
      ip('netns', 'add', name)
      ip('link', 'add', port, 'type', 'veth', 'peer', 'name', device, 'netns', name)
      ip('link', 'set', port, 'master', bridge, 'up')
      ip('-n', name, 'addr', 'add', `${addressOf(index + 1)}/24`, 'dev', device)
      ip('-n', name, 'link', 'set', device, 'up')
      ip('-n', name, 'link', 'set', 'lo', 'up')
    }
  }

  /** A blocked path loses packets, because their sender has a wrong hardware address for their receiver. */
  update(mayPass: MayPass): void {
    const numbers = this.#names.map((_, index) => index + 1)
    for (const from of numbers) for (const to of numbers) if (from !== to) this.#set(from, to, !mayPass(from, to))
  }

  #set(from: number, to: number, blocked: boolean): void {
    const path = `${from} ${to}`
    if (blocked === this.#blocked.has(path)) return
    const neighbour = ['-n', this.#names[from - 1]!, 'neigh', blocked ? 'replace' : 'del', addressOf(to)]
    if (blocked) {
      ip(...neighbour, 'lladdr', nowhere, 'nud', 'permanent', 'dev', device)
      this.#blocked.add(path)
    } else {
      ip(...neighbour, 'dev', device)
      this.#blocked.delete(path)
    }
  }

  readonly #removeNames = (): void => {
    for (const name of this.#names) spawnSync('ip', ['netns', 'del', name])
  }

  async close(): Promise<void> {
    process.off('exit', this.#removeNames)
    this.#removeNames()
    ip('link', 'del', bridge)
  }
}

function addressOf(number: number): string {
  return `${prefix}${number}`
}
