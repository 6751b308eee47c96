import { createServer, type AddressInfo, type Server } from 'node:net'

/**
 * The ports are below those that Linux uses for outgoing connections (32768 and above): a connection could take one of
 * these between the end of a node and its next start.
 */
const portMin = 10_000
const portMax = 32_767

/**
 * Two processes run tests side by side. A port that one of them has chosen is free until its node starts, and while its
 * node is down. So each process chooses from blocks of its own, and no port twice.
 */
const processes = 2
const blockSize = 4
const ownProcess = Number(process.env.MOCHA_WORKER_ID ?? 0) % processes
const chosen = new Set<number>()

/** Returns loopback ports that are not in use. All are held until the last one is found, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = []
  while (held.length < count) held.push(...await hold([randomPort()]))
  return release(held)
}

/** Returns a free port; the ports at the given distances above it are free too. */
export async function freePortWith(distances: readonly number[]): Promise<number> {
  const all = [0, ...distances]
  for (;;) {
    const first = randomPort()
    const held = await hold(all.map(distance => first + distance))
    await release(held)
    if (held.length === all.length) return first
  }
}

function randomPort(): number {
  return portMin + Math.floor(Math.random() * (portMax - portMin + 1))
}

function mayChoose(port: number): boolean {
  return port <= portMax && Math.floor(port / blockSize) % processes === ownProcess && !chosen.has(port)
}

/** Opens listeners on those of the ports that this process may choose and that are free. */
async function hold(ports: readonly number[]): Promise<Server[]> {
  const servers = await Promise.all(ports.filter(mayChoose).map(port => new Promise<Server | undefined>(resolve => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })))
  return servers.filter(server => server !== undefined)
}

async function release(servers: readonly Server[]): Promise<number[]> {
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  for (const port of ports) chosen.add(port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
