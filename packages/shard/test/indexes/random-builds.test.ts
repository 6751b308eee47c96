import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { ManualClock, SeededRandom } from '@sectional/runtime'
import {
  BuildQueue, buildSliceMs, type BuildTurn, groupSliceMs, shortBuildMs, slowBuildMs,
} from '../../src/indexes/build-queue.ts'

describe('the queue of builds, under random builds', () => {
  it('lets every build end, and counts exactly', async () => {
    for (let seed = 1; seed <= 60; seed++) await randomBuilds(new SeededRandom(seed), `seed ${seed}`)
  })
})

interface RandomBuild {
  readonly abort: AbortController
  pages: number
  turn?: BuildTurn
  /** Whether it has a place. */
  works: boolean
  ended: boolean
}

/** Makes random requests and pages until all builds have ended, and compares the counts of the queue with its own. */
async function randomBuilds(random: SeededRandom, label: string): Promise<void> {
  const below = (n: number): number => Math.floor(random.fraction() * n)
  const clock = new ManualClock()
  let isBusy = false
  const queue = new BuildQueue(clock, () => isBusy, {
    runningMax: 1 + below(3), shortMax: 1 + below(3), slowMax: 1 + below(3), pausedMax: below(4), waitingMax: 100,
  })
  const builds: RandomBuild[] = []
  const enter = (): void => {
    const build: RandomBuild = { abort: new AbortController(), pages: 1 + below(20), works: false, ended: false }
    const requested = { group: String(below(4)), changes: 2 * below(1001), wasSlow: below(5) === 0 }
    builds.push(build)
    void queue.enter(build.abort.signal, requested).then(turn => {
      build.turn = turn
      build.works = true
    })
  }
  const leave = (build: RandomBuild): void => {
    build.works = false
    build.ended = true
    build.turn!.leave()
  }
  const writePage = (build: RandomBuild): void => {
    build.turn!.progressed()
    if (--build.pages === 0) return leave(build)
    build.works = false
    void build.turn!.giveWay().then(() => { build.works = true })
  }
  const working = (): RandomBuild[] => builds.filter(({ works }) => works)
  for (let step = 0; step < 300; step++) {
    const some = working()
    const one = some[below(some.length)]
    const what = below(100)
    if (what < 20) enter()
    else if (what < 65) { if (one !== undefined) writePage(one) }
    else if (what < 70) { if (one !== undefined) leave(one) }
    else if (what < 90) await clock.advance([1, buildSliceMs, shortBuildMs, slowBuildMs, groupSliceMs][below(5)]!)
    else if (what < 95) isBusy = !isBusy
    else if (one !== undefined) one.abort.abort()
    await clock.advance(0)
    const waiting = builds.filter(({ works, ended }) => !works && !ended).length
    expect([queue.running, queue.waiting], `${label}, step ${step}`).to.deep.equal([working().length, waiting])
  }
  for (let round = 0; builds.some(({ ended }) => !ended); round++) {
    expect(round, `${label} ends`).to.be.below(5000)
    await clock.advance(buildSliceMs)
    for (const build of working()) writePage(build)
    await clock.advance(0)
  }
  expect([queue.running, queue.waiting, clock.pendingTimers], label).to.deep.equal([0, 0, 0])
  for (const { abort: { signal } } of builds) expect(getEventListeners(signal, 'abort'), label).to.have.length(0)
}
