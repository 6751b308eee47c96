import type { Clock, Timer } from '@sectional/runtime'
import type { HostedShard } from './hosted-shards.ts'

/**
 * Shards that are processed in one turn of the event loop, and milliseconds until the next ones: 10,000 shards a
 * second.
 */
const sliceShards = 250
const slicePauseMs = 25

/**
 * Processes all shards of the node without blocking the event loop for long. While a round is running, no new one
 * starts.
 */
export class SlicedRound {
  readonly #clock: Clock
  readonly #look: (shard: HostedShard) => void
  #timer: Timer | undefined

  constructor(clock: Clock, look: (shard: HostedShard) => void) {
    this.#clock = clock
    this.#look = look
  }

  start(shards: Iterator<HostedShard>): void {
    if (this.#timer === undefined) this.#slice(shards)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #slice(shards: Iterator<HostedShard>): void {
    this.#timer = undefined
    for (let left = sliceShards; left > 0; left--) {
      const { done, value } = shards.next()
      if (done === true) return
      this.#look(value)
    }
    this.#timer = this.#clock.setTimer(slicePauseMs, () => this.#slice(shards))
  }
}
