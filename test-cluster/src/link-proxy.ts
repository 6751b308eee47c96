/**
 * A proxy in front of one node's cluster listener. Every node advertises its proxy, so all links between nodes pass
 * through the test, which can block them. The dialling process is read from /proc (Linux); the proxy does not parse the
 * protocol.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { holdsSocket, socketInode } from './socket-owner.ts'

interface Link { readonly source: number; readonly near: Socket; readonly far: Socket }

export interface LinkProxyOptions {
  readonly listenPort: number
  readonly targetPort: number
  /** Number of the node that listens on `targetPort`. */
  readonly target: number
  /** Current process ids of the nodes, by node number. */
  readonly processIds: () => ReadonlyMap<number, number>
  /** Returns whether bytes from one node may reach the other now; one of the two is `target`. */
  readonly mayPass: (from: number, to: number) => boolean
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
   * Applies `mayPass` to both directions of open links. A link stays open and transfers nothing in a blocked direction,
   * as when packets are lost; neither end is notified. When it is unblocked, it delivers what the kernel has buffered.
   */
  update(): void {
    for (const { source, near, far } of this.#links) {
      if (this.#reachesTarget(source)) near.resume()
      else near.pause()
      if (this.#isReached(source)) far.resume()
      else far.pause()
    }
    // Nodes that dialled while they were blocked must dial again.
    for (const socket of this.#held) socket.destroy()
  }

  #accept(near: Socket): void {
    near.on('error', () => near.destroy())
    const source = this.#sourceOf(near)
    // A connection is established only when both directions work.
    if (!this.#reachesTarget(source) || !this.#isReached(source)) {
      this.#held.add(near)
      near.on('close', () => this.#held.delete(near))
      return void near.pause()
    }
    const far = connect({ host: '127.0.0.1', port: this.#options.targetPort, noDelay: true })
    near.setNoDelay()
    const link = { source, near, far }
    this.#links.add(link)
    far.on('error', () => far.destroy())
    near.on('data', chunk => forward(near, far, chunk, () => this.#reachesTarget(source)))
    far.on('data', chunk => forward(far, near, chunk, () => this.#isReached(source)))
    near.on('end', () => far.end())
    far.on('end', () => near.end())
    near.on('close', () => { far.destroy(); this.#links.delete(link) })
    far.on('close', () => near.destroy())
  }

  #reachesTarget(source: number): boolean {
    return this.#options.mayPass(source, this.#options.target)
  }

  /** Returns whether the target's bytes reach the source. */
  #isReached(source: number): boolean {
    return this.#options.mayPass(this.#options.target, source)
  }

  /** Returns the number of the node whose process dialled, or 0 when it is another process. */
  #sourceOf(socket: Socket): number {
    const inode = socketInode(socket.remotePort!, socket.localPort!)
    if (inode === null) return 0
    for (const [node, processId] of this.#options.processIds()) if (holdsSocket(processId, inode)) return node
    return 0
  }
}

/** Forwards data with backpressure. A link that was blocked in the meantime is not resumed. */
function forward(from: Socket, to: Socket, chunk: Buffer, mayPass: () => boolean): void {
  if (to.write(chunk)) return
  from.pause()
  to.once('drain', () => { if (mayPass()) from.resume() })
}
