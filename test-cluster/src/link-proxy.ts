/**
 * Stands in front of one node's cluster listener. Every node advertises its proxy, so all links between nodes
 * pass through the test, which can hold them up. Who dials is read from /proc (Linux): the protocol itself is
 * not looked into.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { holdsSocket, socketInode } from './socket-owner.ts'

interface Link { readonly source: number; readonly near: Socket; readonly far: Socket }

export interface LinkProxyOptions {
  readonly listenPort: number
  readonly targetPort: number
  /** Process ids of the nodes, by node number, as they are now. */
  readonly processIds: () => ReadonlyMap<number, number>
  /** Whether the node of that number may reach the target now. */
  readonly mayPass: (source: number) => boolean
}

export class LinkProxy {
  readonly #options: LinkProxyOptions
  readonly #links = new Set<Link>()
  readonly #held = new Set<Socket>()
  #server: Server | undefined

  constructor(options: LinkProxyOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    this.#server = createServer(socket => this.#accept(socket))
    await new Promise<void>((resolve, reject) =>
      this.#server!.once('error', reject).listen(this.#options.listenPort, '127.0.0.1', resolve))
  }

  async close(): Promise<void> {
    for (const link of this.#links) link.near.destroy()
    for (const socket of this.#held) socket.destroy()
    await new Promise(resolve => this.#server ? this.#server.close(resolve) : resolve(undefined))
  }

  /**
   * Applies `mayPass` to what is open. A barred link stays open and carries nothing, as when packets are lost:
   * nobody is told. Let through again, it delivers what the kernel kept.
   */
  update(): void {
    for (const link of this.#links) {
      if (this.#options.mayPass(link.source)) { link.near.resume(); link.far.resume() }
      else { link.near.pause(); link.far.pause() }
    }
    // Those that dialled into the void dial again.
    for (const socket of this.#held) socket.destroy()
  }

  #accept(near: Socket): void {
    near.on('error', () => near.destroy())
    const source = this.#sourceOf(near)
    if (!this.#options.mayPass(source)) {
      this.#held.add(near)
      near.on('close', () => this.#held.delete(near))
      return void near.pause()
    }
    const far = connect({ host: '127.0.0.1', port: this.#options.targetPort, noDelay: true })
    near.setNoDelay()
    const link = { source, near, far }
    this.#links.add(link)
    far.on('error', () => far.destroy())
    near.on('data', chunk => forward(near, far, chunk, () => this.#options.mayPass(source)))
    far.on('data', chunk => forward(far, near, chunk, () => this.#options.mayPass(source)))
    near.on('end', () => far.end())
    far.on('end', () => near.end())
    near.on('close', () => { far.destroy(); this.#links.delete(link) })
    far.on('close', () => near.destroy())
  }

  /** Number of the node whose process holds the dialling end; 0: somebody else's. */
  #sourceOf(socket: Socket): number {
    const inode = socketInode(socket.remotePort!, socket.localPort!)
    if (inode === null) return 0
    for (const [node, processId] of this.#options.processIds()) if (holdsSocket(processId, inode)) return node
    return 0
  }
}

/** With back-pressure; a link that was barred meanwhile stays silent. */
function forward(from: Socket, to: Socket, chunk: Buffer, mayPass: () => boolean): void {
  if (to.write(chunk)) return
  from.pause()
  to.once('drain', () => { if (mayPass()) from.resume() })
}
