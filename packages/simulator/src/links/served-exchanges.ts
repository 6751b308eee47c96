import { createHash } from 'node:crypto'
import { ReplicaError } from '@sectional/core'
import type {
  CallContext, LocalDocument, PeerIdentity, ReplicaCheckpoint, ScanLocalDocumentsRequest, ShardId, ShardReplica,
  UpdateLocalDocumentReply, UpdateLocalDocumentRequest, WrittenBlob,
} from '@sectional/core'
import { defaultLimits } from '@sectional/server'
import type { NodeClock } from '../world/node-clock.ts'
import { idOfPiece, pieceOf, requestOf } from './exchange.ts'
import type { Exchange } from './exchange.ts'
import type { WatchedNetwork } from './watched-network.ts'

/** The shard on which exchanges are made. No node has it; the simulator answers for it at the served end. */
export const exchangeShard: ShardId = { incarnation: 'exchanges', range: { begin: 0, end: 0xffff_ffff } }

/** Most pages that are made ahead of the reader: those of the window, and one at each step of the sender. */
const pagesAheadMax = defaultLimits.streamPages + 2

export interface ServedExchangesParts {
  readonly exchange: (id: string) => Exchange | undefined
  readonly report: (rule: string, text: string) => void
}

/** The served end of exchanges. It does what their plans say. */
export class ServedExchanges {
  readonly #parts: ServedExchangesParts

  constructor(parts: ServedExchangesParts) { this.#parts = parts }

  /** Returns the replica of the shard of exchanges, as the node serves it to one peer. */
  replica(network: WatchedNetwork, from: PeerIdentity): ShardReplica {
    const replica: Pick<ShardReplica, 'updateLocalDocument' | 'waitForChange' | 'scanLocalDocuments'>
      & { readonly blobs: Pick<ShardReplica['blobs'], 'writeBlob'> } = {
        updateLocalDocument: (request, context) => this.#call(network, from, request, context),
        waitForChange: (seen, context) => this.#wait(network, from, seen, context),
        scanLocalDocuments: (request, context) => this.#scan(network, from, request, context),
        blobs: { writeBlob: (chunks, context) => this.#upload(network, from, chunks, context) },
      }
    return replica as ShardReplica
  }

  #begin(network: WatchedNetwork, from: PeerIdentity, id: string): Exchange {
    const exchange = this.#parts.exchange(id)
    if (exchange === undefined || exchange.to !== network.node || exchange.from.name !== from.node) {
      this.#parts.report('exchanges-match', `${network.node.name} received ${id} from ${from.node}: ${exchange}`)
      throw new ReplicaError('storage', 'an unknown exchange')
    }
    if (exchange.served) this.#parts.report('exchanges-match', `${exchange} began twice`)
    if (exchange.nothingDone) {
      this.#parts.report('nothing-done', `${exchange} was served after it had been reported as not done`)
    }
    exchange.served = network
    return exchange
  }

  async #call(
    network: WatchedNetwork, from: PeerIdentity, request: UpdateLocalDocumentRequest, context: CallContext,
  ): Promise<UpdateLocalDocumentReply> {
    const exchange = this.#begin(network, from, request.id)
    if (!Buffer.from(request.body ?? []).equals(requestOf(exchange))) {
      this.#parts.report('exchanges-match', `${exchange} arrived with another body`)
    }
    await this.#work(exchange, network, context)
    const stamp = Math.floor(exchange.startedMs)
    return { kind: 'updated', document: { ...request, stamp, body: pieceOf(exchange, 0) } }
  }

  async #wait(
    network: WatchedNetwork, from: PeerIdentity, seen: ReplicaCheckpoint, context: CallContext,
  ): Promise<ReplicaCheckpoint> {
    const exchange = this.#begin(network, from, seen.history)
    await this.#work(exchange, network, context)
    return { history: seen.history, sequence: seen.sequence + 1 }
  }

  /** Takes the time of an exchange with one answer, and fails if the plan says so. */
  async #work(exchange: Exchange, { node }: WatchedNetwork, context: CallContext): Promise<void> {
    try {
      await takeTime(node.clock, exchange.plan.servedMs, context)
      failAsPlanned(exchange)
    } finally {
      exchange.servedOver = true
    }
  }

  async *#scan(
    network: WatchedNetwork, from: PeerIdentity, request: ScanLocalDocumentsRequest, context: CallContext,
  ): AsyncGenerator<readonly LocalDocument[]> {
    const exchange = this.#begin(network, from, request.start?.id ?? 'no id')
    try {
      for (let made = 0; made < exchange.plan.pieces; made++) {
        await takeTime(network.node.clock, exchange.plan.servedMs, context)
        this.#checkPagesAhead(exchange, made + 1)
        yield [{ id: `${exchange.id}:${made}`, revision: made, stamp: 1, body: pieceOf(exchange, made) }]
      }
      failAsPlanned(exchange)
    } finally {
      exchange.servedOver = true
    }
  }

  #checkPagesAhead(exchange: Exchange, made: number): void {
    const { pieces, plan: { pieceBytes } } = exchange
    const ahead = made - pieces
    if (ahead > pagesAheadMax || (ahead - 1) * pieceBytes > defaultLimits.streamBytes + pieceBytes) {
      this.#parts.report('windows-kept', `${exchange}: ${made} pages were made when the reader had taken ${pieces}`)
    }
  }

  async #upload(
    network: WatchedNetwork, from: PeerIdentity, chunks: AsyncIterable<Uint8Array>, context: CallContext,
  ): Promise<WrittenBlob> {
    let exchange: Exchange | undefined
    const hash = createHash('sha256')
    try {
      for await (const chunk of chunks) {
        exchange ??= this.#begin(network, from, idOfPiece(chunk))
        hash.update(chunk)
        exchange.takenBytes += chunk.length
        const { servedMs } = exchange.plan
        if (servedMs < Infinity) await takeTime(network.node.clock, servedMs, context)
      }
      if (exchange === undefined) throw new ReplicaError('cancelled', 'an upload without content')
      const digest = hash.digest('hex')
      this.#checkComplete(exchange, digest)
      if (exchange.plan.servedMs === Infinity) await takeTime(network.node.clock, Infinity, context)
      failAsPlanned(exchange)
      return { hash: digest, length: exchange.takenBytes }
    } finally {
      if (exchange) exchange.servedOver = true
    }
  }

  #checkComplete(exchange: Exchange, digest: string): void {
    if (exchange.complete && digest === contentHash(exchange)) return
    this.#parts.report(
      'streams-complete',
      `${exchange} ended at the receiver like a complete one after ${exchange.takenBytes} bytes; its source `
        + `${exchange.complete ? 'has sent other bytes' : 'did not end'}`,
    )
  }
}

/** Returns the SHA-256 of the whole content of an upload. */
export function contentHash(exchange: Exchange): string {
  const hash = createHash('sha256')
  for (let index = 0; index < exchange.plan.pieces; index++) hash.update(pieceOf(exchange, index))
  return hash.digest('hex')
}

/** @throws ReplicaError when the call is aborted meanwhile */
function takeTime(clock: NodeClock, ms: number, { signal }: CallContext): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      timer?.cancel()
      reject(new ReplicaError('cancelled', 'the exchange was aborted'))
    }
    if (signal?.aborted) return reject(new ReplicaError('cancelled', 'the exchange was aborted'))
    const timer = ms === Infinity ? undefined : clock.setTimer(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}

function failAsPlanned({ plan: { fails } }: Exchange): void {
  if (fails !== null) throw new ReplicaError(fails, `planned failure ${fails}`, { nothingDone: false })
}
