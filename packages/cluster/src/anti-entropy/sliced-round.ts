import type { Clock, Timer } from '@sectional/runtime'
import type { HostedShard } from './hosted-shards.ts'

/** Shards that are looked at in one turn of the event loop, and the pause until the next ones: 10,000 a second. */
const sliceShards = 250
const slicePauseMs = 25

/** Looks at all shards of the node without holding the event loop. A round that is still under way goes on in place of a new one. */
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
