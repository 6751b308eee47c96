import type { ShardReplica } from '@sectional/core'
import { all } from './portrait.ts'
import { textOf } from '../world/value-text.ts'
import { readCall } from './replica-contents.ts'

const bucketCount = 16

/**
 * Digests that any replica has given. Equal leaves must have equal digests, and different leaves different ones,
 * because anti-entropy compares nothing else of replicas whose checkpoints are equal.
 */
export class KnownDigests {
  readonly #leaves = new Map<string, string>()
  readonly #digests = new Map<string, string>()

  /**
   * Returns what the replica's digests contradict, or null.
   * @param isSame whether the replica has not changed since the call
   */
  async contradiction(replica: ShardReplica, isSame: () => boolean): Promise<string | null> {
    let digests
    const buckets: string[] = []
    try {
      digests = await replica.upkeep.digestDocuments(bucketCount, readCall)
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        buckets.push(textOf(await all(replica.upkeep.scanDigestBucket({ bucketCount, bucket }, readCall))))
      }
    } catch {
      return null
    }
    if (!isSame()) return null
    for (const [index, leaves] of buckets.entries()) {
      const digest = digests[index]!
      const others = this.#leaves.get(digest) ?? leaves
      const other = this.#digests.get(leaves) ?? digest
      this.#leaves.set(digest, others)
      this.#digests.set(leaves, other)
      if (others !== leaves) return `the digest ${digest} stands for ${leaves} and for ${others}`
      if (other !== digest) return `${leaves} have the digests ${digest} and ${other}`
    }
    return null
  }
}
