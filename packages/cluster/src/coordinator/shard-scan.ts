import { ReplicaError } from '@sectional/core'
import type { CallContext, IdBound, ShardReplica } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext } from './coordinator.ts'
import type { Peer, ShardPlace } from './replica-access.ts'
import { asReplicaError, shardFailure } from './replica-failures.ts'

/** What to scan, first and last in the direction of the scan. */
export interface ScanSpan {
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
}

/**
 * Rows of one shard in order from one replica; when it fails or falls silent, the next one goes on behind the
 * last row.
 *
 * @throws ApiError when no replica is left
 */
export async function* scanShard<Row extends { readonly id: string }>(
  scope: CoordinatorScope, place: ShardPlace, span: ScanSpan,
  open: (replica: ShardReplica, span: ScanSpan, call: CallContext) => AsyncIterable<readonly Row[]>, context: RequestContext,
): AsyncGenerator<readonly Row[]> {
  const errors: ReplicaError[] = []
  const failed = new Set<string>()
  let rest = span
  for (;;) {
    const peer = scope.access.readers(place).find(reader => !failed.has(reader.node))
    if (peer === undefined || context.signal.aborted) throw shardFailure(errors)
    const source = new ReplicaScan(scope, peer, call => open(peer.replica, rest, call), context)
    try {
      for (let page = await source.next(); page !== null; page = await source.next()) {
        const last = page.at(-1)
        if (last === undefined) continue
        failed.clear()
        rest = { ...rest, start: { id: last.id, inclusive: false }, ...(rest.limit !== undefined && { limit: rest.limit - page.length }) }
        yield page
        if (rest.limit !== undefined && rest.limit <= 0) return
      }
      return
    } catch (error) {
      failed.add(peer.node)
      errors.push(asReplicaError(error))
    } finally {
      await source.close()
    }
  }
}

/** The scan of one replica; every page of a remote one must come in time. */
class ReplicaScan<Row> {
  readonly #scope: CoordinatorScope
  readonly #peer: Peer
  readonly #iterator: AsyncIterator<readonly Row[]>
  readonly #abort = new AbortController()
  readonly #client: AbortSignal
  readonly #onClientGone = (): void => { this.#abort.abort() }

  constructor(scope: CoordinatorScope, peer: Peer, open: (call: CallContext) => AsyncIterable<readonly Row[]>, context: RequestContext) {
    this.#scope = scope
    this.#peer = peer
    this.#client = context.signal
    this.#client.addEventListener('abort', this.#onClientGone, { once: true })
    this.#iterator = open({ timeoutMs: scope.options.scanTimeoutMs, signal: this.#abort.signal, requestId: context.requestId })[Symbol.asyncIterator]()
  }

  /** Null at the end. */
  async next(): Promise<readonly Row[] | null> {
    const result = await (this.#peer.local ? this.#iterator.next() : this.#nextInTime())
    return result.done ? null : result.value
  }

  /** Releases what the scan holds at both ends. */
  async close(): Promise<void> {
    this.#client.removeEventListener('abort', this.#onClientGone)
    this.#abort.abort()
    // A silent replica may never confirm; the abort has told it, and a stop waits for what is left.
    const returned = Promise.resolve(this.#iterator.return?.()).then(() => undefined, () => undefined)
    if (this.#peer.local) await returned
    else this.#scope.background.track(returned)
  }

  #nextInTime(): Promise<IteratorResult<readonly Row[]>> {
    const { clock } = this.#scope.runtime
    const ms = this.#scope.options.scanPageTimeoutMs
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(ms, () => {
        this.#scope.readHealth.silent(this.#peer.node)
        this.#abort.abort()
        reject(new ReplicaError('timeout', `${this.#peer.node} sent no page within ${ms} ms`))
      })
      this.#iterator.next().then(result => {
        timer.cancel()
        resolve(result)
      }, (error: unknown) => {
        timer.cancel()
        reject(error)
      })
    })
  }
}
