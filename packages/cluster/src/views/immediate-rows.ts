import type { ImmediateAnswer, IndexRead, RowSequence } from '@sectional/core'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { ReadIndex, ShardRead, ShardRows } from './shard-read.ts'
import type { ViewScope } from './view-scope.ts'

/** What a query reads of the index of each shard, before it is known which replica answers. */
export interface ImmediateRead<Place> extends Pick<ShardRead<Place, never>, 'update' | 'newest'> {
  /** The same object for all shards, so that indexes can keep what they make of it. */
  readonly request: IndexRead<Place>
}

/**
 * Reads one shard from the memory of this node, if the shard is read here and the answer is there. The answer is the
 * one that a call would give: the replica has every write that the query must contain, and its index has them, too.
 */
export function immediateRows<Place, Row extends Place>(
  scope: ViewScope, place: ShardPlace, { request, update, newest }: ImmediateRead<Place>,
  { immediate }: Pick<ReadIndex<Place, Row>, 'immediate'>,
): ImmediateRows<Row> | undefined {
  const { access, indexes, newestReaders, unconfirmed } = scope
  const { index } = request
  // The build of a query with `lazy` begins when its answer is closed, which takes a call.
  if (update === 'lazy' || !access.readsLocally(access.now(place))) return undefined
  if (update ? unconfirmed.isBehind(place.id, access.node, newest) : newestReaders.nodeOf(place.id, index)) {
    return undefined
  }
  const memory = indexes.immediate?.(place.id)
  const answer = memory && immediate(memory, request)
  if (answer === undefined) return undefined
  if (update) newestReaders.answered(place.id, index, access.node, true)
  return new ImmediateRows(place, access.node, answer)
}

/** Rows that are all there. */
class ImmediateRows<Row> implements ShardRows<Row> {
  readonly place: ShardPlace
  readonly node: string
  readonly head: ImmediateAnswer<Row>['head']
  readonly rows: RowSequence<Row>

  constructor(place: ShardPlace, node: string, { head, rows }: ImmediateAnswer<Row>) {
    this.place = place
    this.node = node
    this.head = head
    this.rows = rows
  }

  async* pages(): AsyncGenerator<readonly Row[]> {
    if (this.rows.length > 0) yield [...this.rows]
  }

  async close(): Promise<void> {}
}
