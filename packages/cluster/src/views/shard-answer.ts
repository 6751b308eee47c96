import type { IndexHead } from '@sectional/core'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { ShardIndex } from './shard-index.ts'
import { nextPage, releasePages } from '../shard-calls/replica-pages.ts'
import type { OpenedIndex, ReadRest, ShardRead, ShardRows } from './shard-read.ts'
import type { ViewScope } from './view-scope.ts'

/**
 * The rows of one shard, read from one replica. When it fails, another one with the same rows continues behind the last
 * row.
 */
export class ShardAnswer<Place, Row extends Place> implements ShardRows<Row> {
  readonly #scope: ViewScope
  readonly #request: ShardRead<Place, Row>
  readonly #index: ShardIndex<Place, Row>
  readonly place: ShardPlace
  /** What the answer's first replica has reported, and its node. Another replica that takes over does not change it. */
  readonly head: IndexHead
  readonly node: string
  #rest: ReadRest<Place>
  #opened: OpenedIndex<Row>
  /** The first page of `#opened`, until it was returned. */
  #first: readonly Row[] | undefined
  #closed = false

  private constructor(
    scope: ViewScope, place: ShardPlace, request: ShardRead<Place, Row>, index: ShardIndex<Place, Row>,
    opened: OpenedIndex<Row>, rest: ReadRest<Place>,
  ) {
    this.#scope = scope
    this.place = place
    this.#request = request
    this.#index = index
    this.#opened = opened
    this.#first = opened.first
    this.head = opened.head
    this.node = opened.peer.node
    this.#rest = rest
  }

  /**
   * @param deadline monotonic time in milliseconds until which to wait for a build
   * @throws IndexBehindError when it has passed; ApiError when no replica is left
   */
  static async open<Place, Row extends Place>(
    scope: ViewScope, place: ShardPlace, request: ShardRead<Place, Row>, rest: ReadRest<Place>, deadline: number,
  ): Promise<ShardAnswer<Place, Row>> {
    const index = new ShardIndex(scope, place, request)
    return new ShardAnswer(scope, place, request, index, await index.open(rest, deadline), rest)
  }

  /** Returns the rows in order. Can be called once. Every page has at least one row. */
  async* pages(): AsyncGenerator<readonly Row[]> {
    try {
      while (this.#rest.limit !== 0) {
        const page = await this.#nextPage()
        if (page === undefined) return
        yield page
      }
    } finally {
      await this.close()
    }
  }

  /** Returns undefined at the end. */
  async #nextPage(): Promise<readonly Row[] | undefined> {
    for (;;) {
      try {
        const { peer, pages } = this.#opened
        // The head comes in the first page only.
        const page = this.#first ?? await nextPage(this.#scope, peer, pages) as readonly Row[] | undefined
        this.#first = undefined
        if (page === undefined) return undefined
        if (page.length === 0) continue
        const { limit } = this.#rest
        const taken = this.#request.countOf?.(page) ?? page.length
        this.#rest = { after: page.at(-1)!, ...(limit !== undefined && { limit: limit - taken }) }
        this.#index.advanced()
        return page
      } catch (error) {
        this.#index.failed(this.#opened.peer, error)
        this.#scope.background.track(releasePages(this.#opened.pages))
      }
      const deadline = this.#scope.runtime.clock.monotonic() + this.#request.timeoutMs
      this.#opened = await this.#index.continue(this.#rest, this.head.version, deadline)
      this.#first = this.#opened.first
    }
  }

  /** Releases the replica. Begins the build of a query with `update=lazy`. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const { peer, pages } = this.#opened
    if (this.#request.update === 'lazy') this.#scope.background.track(this.#index.beginBuild(peer))
    await releasePages(pages)
  }
}
