import type { ShardId } from '../contracts/shard-id.ts'

/** Returns a text that identifies the shard in maps in memory and in error texts. It is never stored. */
export function shardKey({ incarnation, range: { begin, end } }: ShardId): string {
  return `${incarnation}/${begin}-${end}`
}
