import type { ShardId } from '../contracts/shard-id.ts'

/** A text that names the shard, for maps in memory and for error texts. It is nowhere stored. */
export function shardKey({ incarnation, range: { begin, end } }: ShardId): string {
  return `${incarnation}/${begin}-${end}`
}
