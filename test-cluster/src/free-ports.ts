import { createServer, type AddressInfo, type Server } from 'node:net'

/**
 * The ports are below those that Linux uses for outgoing connections (32768 and above): a connection could take one of
 * these between the end of a node and its next start.
 */
const portMin = 10_000
const portMax = 32_767

/** Returns loopback ports that are not in use. All are held until the last one is found, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = []
  while (held.length < count) held.push(...await hold(randomPort(), [0]))
  return release(held)
}

/** Returns a free port; the ports at the given distances above it are free too. */
export async function freePortWith(distances: readonly number[]): Promise<number> {
  const all = [0, ...distances]
  for (;;) {
    const first = randomPort()
    const held = first + Math.max(...all) <= portMax ? await hold(first, all) : []
    await release(held)
    if (held.length === all.length) return first
  }
}

function randomPort(): number {
  return portMin + Math.floor(Math.random() * (portMax - portMin + 1))
}

/** Opens listeners on those of the ports that are free. */
async function hold(first: number, distances: readonly number[]): Promise<Server[]> {
  const servers = await Promise.all(distances.map(distance => new Promise<Server | undefined>(resolve => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(first + distance, '127.0.0.1', () => resolve(server))
  })))
  return servers.filter(server => server !== undefined)
}

async function release(servers: readonly Server[]): Promise<number[]> {
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
