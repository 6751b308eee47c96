import { expect } from 'chai'
import type { HostedShard } from '../../src/anti-entropy/hosted-shards.ts'
import { SyncQueue, type SyncJob, type SyncKind } from '../../src/anti-entropy/sync-queue.ts'

function jobOf(kind: SyncKind, shard: string, peer: string): SyncJob {
  return { kind, shard: { key: shard } as HostedShard, peer }
}

/** A queue whose passes end when the test says so. */
class HeldPasses {
  readonly running: { readonly name: string; readonly end: (succeeded: boolean) => void }[] = []
  readonly #results: string[] = []
  readonly #queue: SyncQueue

  constructor(concurrency: number) {
    this.#queue = new SyncQueue(concurrency, ({ kind, shard, peer }) => new Promise(resolve => {
      this.running.push({ name: `${kind} ${shard.key} ${peer}`, end: resolve })
    }))
  }

  get names(): readonly string[] { return this.running.map(({ name }) => name) }

  stop(): Promise<void> { return this.#queue.stop() }

  get size(): number { return this.#queue.size }

  /** @param caller names the call among the results */
  add(caller: string, job: SyncJob, urgent = false): void {
    void this.#queue.add(job, urgent).then(succeeded => this.#results.push(`${caller} ${succeeded}`))
  }

  /** Ends the oldest running pass. @returns the results of the calls that this settles */
  async end(succeeded: boolean): Promise<readonly string[]> {
    this.running.shift()!.end(succeeded)
    await new Promise(resolve => { setImmediate(resolve) })
    return this.#results.splice(0)
  }
}

describe('the queue of passes between replicas', () => {
  for (const urgent of [false, true]) {
    const call = urgent ? 'an urgent call' : 'a call'
    it(`gives ${call} the result of a pass that began after it, not of a running one`, async () => {
      const passes = new HeldPasses(4)
      const pull = jobOf('pull', 's', 'b')
      passes.add('first', pull, urgent)
      expect(passes.names).to.deep.equal(['pull s b'])
      passes.add('second', pull, urgent)
      passes.add('third', pull, urgent)
      expect(passes.names, 'one at a time').to.deep.equal(['pull s b'])
      expect(await passes.end(true)).to.deep.equal(['first true'])
      expect(passes.names).to.deep.equal(['pull s b'])
      passes.add('fourth', pull, urgent)
      expect(await passes.end(false)).to.deep.equal(['second false', 'third false'])
      expect(await passes.end(true)).to.deep.equal(['fourth true'])
      expect(passes.size).to.equal(0)
    })
  }

  it('runs passes of other kinds, shards and peers at the same time, up to its limit, urgent ones first', async () => {
    const passes = new HeldPasses(3)
    passes.add('1', jobOf('pull', 's', 'b'))
    passes.add('2', jobOf('push', 's', 'b'))
    passes.add('3', jobOf('pull', 't', 'b'))
    passes.add('4', jobOf('pull', 's', 'c'))
    passes.add('5', jobOf('pull', 't', 'c'))
    passes.add('6', jobOf('compare', 's', 'b'), true)
    passes.add('7', jobOf('pull', 't', 'c'), true)
    expect(passes.names).to.deep.equal(['pull s b', 'push s b', 'pull t b'])
    expect(passes.size).to.equal(6)
    expect(await passes.end(true)).to.deep.equal(['1 true'])
    expect(await passes.end(true)).to.deep.equal(['2 true'])
    expect(await passes.end(true)).to.deep.equal(['3 true'])
    expect(passes.names).to.deep.equal(['compare s b', 'pull t c', 'pull s c'])
    expect(await passes.end(true)).to.deep.equal(['6 true'])
    expect(await passes.end(true)).to.deep.equal(['5 true', '7 true'])
    expect(await passes.end(true)).to.deep.equal(['4 true'])
  })

  it('starts no pass after it was stopped, and none of those that wait', async () => {
    const passes = new HeldPasses(1)
    passes.add('running', jobOf('pull', 's', 'b'))
    passes.add('waiting', jobOf('pull', 't', 'b'))
    passes.add('urgent', jobOf('compare', 't', 'b'), true)
    let isStopped = false
    const stopped = passes.stop().then(() => { isStopped = true })
    passes.add('late', jobOf('pull', 'u', 'b'))
    await new Promise(resolve => { setImmediate(resolve) })
    expect(isStopped, 'a pass is running').to.equal(false)
    expect((await passes.end(true)).toSorted()).to.deep.equal(
      ['late false', 'running true', 'urgent false', 'waiting false'])
    await stopped
    expect([passes.names, passes.size]).to.deep.equal([[], 0])
  })
})
