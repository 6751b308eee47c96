import type { ImmediateAnswer, ImmediateIndexReads, IndexRead, RowSequence } from '@sectional/core'
import type { ShardPlace } from '../replicas/replica-access.ts'
import type { ReadIndex, ShardRead, ShardRows } from './shard-read.ts'
import type { ViewScope } from './view-scope.ts'

/** What a query reads of the index of each shard, before it is known which replica answers. */
export interface ImmediateRead<Place> extends Pick<ShardRead<Place, never>, 'update' | 'newest'> {
  /** The same object for all shards, so that indexes can keep what they make of it. */
  readonly request: IndexRead<Place>
}

/**
 * Reads shards from the memory of this node: those that are read here and whose answer is there. The answer is the one
 * that a call would give: the replica has every write that the query must contain, and its index has them, too.
 *
 * @returns the rows of each shard, or undefined for a shard that takes a call
 */
export function immediateRows<Place, Row extends Place>(
  scope: ViewScope, places: readonly ShardPlace[], read: ImmediateRead<Place>,
  { immediate }: Pick<ReadIndex<Place, Row>, 'immediate'>,
): readonly (ImmediateRows<Row> | undefined)[] {
  const { access, newestReaders } = scope
  const answers = immediate(places.map(place => readableIndexes(scope, place, read)), read.request)
  return places.map((place, at) => {
    const answer = answers[at]
    if (answer === undefined) return undefined
    if (read.update) newestReaders.answered(place.id, read.request.index, access.node, true)
    return new ImmediateRows(place, access.node, answer)
  })
}

/** Returns the indexes of a shard on this node if the query may read them without a call. */
function readableIndexes<Place>(
  { access, indexes, newestReaders, unconfirmed }: ViewScope, place: ShardPlace,
  { request: { index }, update, newest }: ImmediateRead<Place>,
): ImmediateIndexReads | undefined {
  // The build of a query with `lazy` begins when its answer is closed, which takes a call.
  if (update === 'lazy' || !access.readsLocally(access.now(place))) return undefined
  const isElsewhere = update
    ? unconfirmed.isBehind(place.id, access.node, newest)
    : newestReaders.nodeOf(place.id, index) !== undefined
  return isElsewhere ? undefined : indexes.immediate?.(place.id)
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
