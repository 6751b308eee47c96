import { expect } from 'chai'
import { ManualClock, sleep } from '@sectional/runtime'
import { BuildQueue, buildSliceMs, groupSliceMs, shortBuildMs, slowBuildMs } from '../../src/indexes/build-queue.ts'
import type { BuildTurn, RequestedBuild } from '../../src/indexes/build-queue.ts'

type Request = Omit<RequestedBuild, 'group'> & { readonly group?: string }

const many: Request = { changes: 1001, wasSlow: false }
const few: Request = { changes: 1000, wasSlow: false }
const progressMs = 1000
const wasSlow: Request = { changes: 1, wasSlow: true }

describe('the queue of builds', () => {
  const signal = new AbortController().signal
  let clock: ManualClock
  let queue: BuildQueue
  let isBusy: boolean
  let groups = 0
  beforeEach(() => {
    clock = new ManualClock()
    isBusy = false
    queue = new BuildQueue(clock, () => isBusy, { runningMax: 2, waitingMax: 10, slowMax: 3 })
  })

  /** Requests turns, and returns those that have begun. Each build is a group of its own unless it names one. */
  function request(count: number, build = many): BuildTurn[] {
    const begun: BuildTurn[] = []
    for (let n = 0; n < count; n++) void enter(signal, build).then(turn => begun.push(turn))
    return begun
  }

  function enter(ended: AbortSignal, build: Request): Promise<BuildTurn> {
    return queue.enter(ended, { group: `group ${groups++}`, ...build })
  }

  it('refuses builds when too many wait, except one that continues', () => {
    request(12)
    expect(queue.waiting).to.equal(10)
    expect(() => enter(signal, many)).to.throw('10 builds of indexes wait already')
    request(1, { ...many, continues: true })
    expect(queue.waiting).to.equal(11)
  })

  it('lets others begin in place of builds that make no progress', async () => {
    const stuck = request(2)
    const others = request(1)
    await clock.advance(slowBuildMs - 1)
    expect([stuck.length, others.length]).to.deep.equal([2, 0])
    await clock.advance(1)
    expect(others.length).to.equal(1)
    expect(stuck.map(({ wasSlow }) => wasSlow)).to.deep.equal([true, true])
    expect([queue.running, queue.waiting]).to.deep.equal([3, 0])
  })

  it('counts builds that make progress', async () => {
    const working = request(2)
    const others = request(1)
    for (let n = 0; n < 5; n++) {
      await clock.advance(slowBuildMs - 1)
      for (const turn of working) turn.progressed()
    }
    expect(others.length).to.equal(0)
    working[0]!.leave()
    await clock.advance(0)
    expect(others.length).to.equal(1)
  })

  it('lets a build that is cancelled stop to wait, and never gives it a place afterwards', async () => {
    const [first] = [request(2)]
    const cancelled = new AbortController()
    let turn: BuildTurn | undefined
    void enter(cancelled.signal, many).then(found => { turn = found })
    await clock.advance(0)
    expect([turn, queue.waiting]).to.deep.equal([undefined, 1])
    cancelled.abort()
    await clock.advance(0)
    expect([turn?.wasSlow, queue.waiting]).to.deep.equal([false, 0])
    turn!.progressed()
    await turn!.giveWay()
    turn!.leave()
    for (const each of first) each.leave()
    expect([queue.running, clock.pendingTimers]).to.deep.equal([0, 0])
  })

  it('keeps builds that were slow before apart', async () => {
    const slow = request(5, wasSlow)
    const others = request(2)
    await clock.advance(0)
    expect([slow.length, others.length]).to.deep.equal([3, 2])
    slow[0]!.leave()
    await clock.advance(0)
    expect([slow.length, others.length]).to.deep.equal([4, 2])
  })

  it('counts a slow build again once it makes progress quickly', async () => {
    const [slow] = [request(1, wasSlow)]
    await clock.advance(slowBuildMs)
    slow[0]!.progressed()
    await clock.advance(1)
    const beside = request(2)
    await clock.advance(0)
    expect(beside.length).to.equal(2)
    slow[0]!.progressed()
    beside[0]!.leave()
    const next = request(1)
    await clock.advance(0)
    expect(next.length).to.equal(0)
    slow[0]!.leave()
    await clock.advance(0)
    expect(next.length).to.equal(1)
  })

  it('lets a slow build begin in place of one that makes progress quickly again', async () => {
    queue = new BuildQueue(clock, () => isBusy, { slowMax: 1 })
    const slow = request(2, wasSlow)
    await clock.advance(100)
    slow[0]!.progressed()
    await clock.advance(0)
    expect([slow.length, queue.running]).to.deep.equal([2, 2])
  })

  it('lets some short builds run beside the others', async () => {
    request(2)
    request(1)
    const short = request(6, few)
    await clock.advance(0)
    expect([short.length, queue.running, queue.waiting]).to.deep.equal([4, 6, 3])
    short[0]!.leave()
    await clock.advance(0)
    expect([short.length, queue.running, queue.waiting]).to.deep.equal([5, 6, 2])
  })

  it('lets a short build begin although builds of another view are requested again and again', async () => {
    const again = { ...few, group: 'a' }
    const short = request(8, again)
    const other = request(1, few)
    for (let n = 0; n < 4; n++) {
      await clock.advance(0)
      short[n]!.leave()
      void enter(signal, again)
    }
    await clock.advance(0)
    expect(other.length).to.equal(1)
  })

  it('lets others begin in place of short builds that make no progress', async () => {
    queue = new BuildQueue(clock, () => isBusy, { shortMax: 1 })
    const [stuck, next] = [request(1, few), request(1, few)]
    await clock.advance(slowBuildMs)
    expect([stuck.length, next.length, queue.running]).to.deep.equal([1, 1, 2])
  })

  it('bounds slow builds, and gives their free places to builds that became slow', async () => {
    const slow = request(3, wasSlow)
    request(2)
    const others = request(1)
    await clock.advance(10 * slowBuildMs)
    expect(others.length).to.equal(0)
    slow[0]!.leave()
    await clock.advance(0)
    expect(others.length).to.equal(1)
    expect(queue.running).to.equal(5)
  })

  describe('with builds that are long', () => {
    /** Lets the builds work for one slice each, and then asks them to give way. Returns those that go on. */
    async function slice(builds: readonly BuildTurn[], ms = buildSliceMs): Promise<Set<BuildTurn>> {
      const going = new Set<BuildTurn>()
      for (let left = ms; left > 0; left -= progressMs) {
        await clock.advance(Math.min(left, progressMs))
        for (const turn of builds) turn.progressed()
      }
      for (const turn of builds) void turn.giveWay().then(() => going.add(turn))
      await clock.advance(0)
      return going
    }

    it('lets a build that waits begin after a slice, and the long one continue behind it', async () => {
      const [long, other] = await begun(2)
      const short = request(1)
      const going = await slice([long!, other!])
      expect([short.length, going.size, queue.running, queue.waiting]).to.deep.equal([1, 1, 2, 1])
      short[0]!.leave()
      await clock.advance(0)
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([2, 2, 0])
    })

    it('lets them go on while nobody waits, and before their slice has ended', async () => {
      const long = await begun(2)
      expect((await slice(long)).size).to.equal(2)
      const fresh = request(3)
      await slice([long[0]!])
      await clock.advance(0)
      expect(fresh.length).to.equal(1)
      let goesOn = false
      void fresh[0]!.giveWay().then(() => goesOn = true)
      await clock.advance(0)
      expect(goesOn).to.equal(true)
    })

    it('give their places to a group that waits behind many short ones of theirs', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const siblings = request(20, { ...many, group: 'a' })
      const other = request(1)
      await clock.advance(0)
      for (let n = 0; other.length === 0 && n < 20; n++) {
        await clock.advance(buildSliceMs / 5)
        siblings.at(-1)!.leave()
        await clock.advance(0)
      }
      expect([siblings.length, other.length]).to.deep.equal([5, 1])
    })

    it('lets them go on while only builds of their own group wait, which begin when one ends', async () => {
      const first = { ...many, group: 'a' }
      const siblings = request(5, first)
      await clock.advance(0)
      const [one, two] = siblings
      expect((await slice([one!, two!])).size).to.equal(2)
      const other = request(1)
      const going = await slice([one!, two!])
      expect([going.size, other.length, siblings.length]).to.deep.equal([1, 1, 2])
      other[0]!.leave()
      await clock.advance(0)
      expect([going.size, siblings.length]).to.deep.equal([2, 2])
      two!.leave()
      await clock.advance(0)
      expect([siblings.length, queue.running, queue.waiting]).to.deep.equal([3, 2, 2])
    })

    it('give their places to a group that has not begun before those that have', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const old = await begun(1)
      const others = request(2)
      await slice(old)
      await slice([others[0]!])
      await slice([others[1]!], groupSliceMs)
      // The first one has its second turn, and the others wait.
      const siblings = request(2, { ...many, group: 'new' })
      await slice(old)
      expect(siblings.length).to.equal(1)
      siblings[0]!.leave()
      await clock.advance(0)
      expect([siblings.length, queue.running, queue.waiting]).to.deep.equal([2, 1, 3])
    })

    it('let builds of a new group begin that are requested during its turn', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const old = await begun(1)
      const other = request(1)
      await slice(old)
      const first = request(1, { ...many, group: 'new' })
      await slice(other)
      await slice(old)
      const later = request(2, { ...many, group: 'new' })
      await clock.advance(10)
      first[0]!.leave()
      await clock.advance(10)
      later[0]!.leave()
      await clock.advance(0)
      expect([first.length, later.length]).to.deep.equal([1, 2])
    })

    it('take turns although short builds of their groups begin and end', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, shortMax: 1 })
      const long = request(1, { ...many, group: 'a' })
      const other = request(1)
      await clock.advance(0)
      await slice(long)
      const going = await slice(other, groupSliceMs)
      expect(going.size).to.equal(0)
      for (let ms = 0; ms < groupSliceMs; ms += progressMs) {
        const short = [request(1, { ...few, group: 'a' }), request(1, few), request(1, { ...few, group: 'a' })]
        await clock.advance(progressMs)
        for (const turn of long) turn.progressed()
        for (const turns of short) {
          turns[0]!.leave()
          await clock.advance(0)
        }
      }
      await slice(long)
      expect(going.size).to.equal(1)
    })

    it('change places after each slice while the node is busy', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const [first, second] = [await begun(1), request(1)]
      await slice(first)
      isBusy = true
      const going = await slice(second)
      await slice(first)
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([1, 1, 1])
    })

    it('do not give way to a group that could not begin', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, pausedMax: 1 })
      const first = await begun(1)
      const second = request(1)
      await slice(first)
      request(1)
      const going = await slice(second)
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([1, 1, 2])
    })

    it('gives a build that continues a whole slice, and watches its progress', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const long = await begun(1)
      const first = request(1)
      const going = await slice(long)
      first[0]!.leave()
      await clock.advance(0)
      expect(going.size).to.equal(1)
      going.clear()
      const others = request(1)
      void long[0]!.giveWay().then(() => going.add(long[0]!))
      await clock.advance(slowBuildMs - 1)
      expect([going.size, others.length]).to.deep.equal([1, 0])
      await clock.advance(1)
      expect([long[0]!.wasSlow, others.length]).to.deep.equal([true, 1])
    })

    it('does not ask slow ones to give way', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, slowMax: 1 })
      const [slow] = [request(1, wasSlow), request(2), request(1, wasSlow)]
      await clock.advance(0)
      await clock.advance(slowBuildMs)
      let goesOn = false
      void slow[0]!.giveWay().then(() => goesOn = true)
      await clock.advance(0)
      expect(goesOn).to.equal(true)
    })

    it('lets no further one begin in the place of too many that wait while the node is busy', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 4, pausedMax: 1 })
      const long = await begun(4)
      isBusy = true
      const going = await slice(long)
      const further = request(1)
      await clock.advance(0)
      expect([going.size, further.length, queue.running, queue.waiting]).to.deep.equal([1, 0, 1, 4])
      for (const turn of long) {
        turn.leave()
        await clock.advance(0)
      }
      expect([going.size, further.length]).to.deep.equal([4, 1])
    })

    it('lets groups take turns, in which a build continues before others of its group begin', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const requests = [many, { ...many, group: 'a' }, { ...many, group: 'a' }, many]
      const turns: BuildTurn[] = []
      for (const build of requests) void enter(signal, build).then(turn => turns.push(turn))
      await clock.advance(0)
      const begins: [build: number, atMs: number][] = []
      const work = async (turn: BuildTurn): Promise<void> => {
        for (;;) {
          const build = turns.indexOf(turn)
          if (begins.at(-1)?.[0] !== build) begins.push([build, clock.monotonic() - start])
          await sleep(clock, buildSliceMs)
          turn.progressed()
          await turn.giveWay()
        }
      }
      const start = clock.monotonic()
      for (let worked = 0; begins.length < 8; await clock.advance(buildSliceMs)) {
        while (worked < turns.length) void work(turns[worked++]!)
      }
      // The third one to begin is the last one that was requested: the second one of group a waits for the first one.
      expect(begins.map(([build]) => build)).to.deep.equal([0, 1, 2, 0, 1, 2, 0, 1])
      expect(begins.map(([, atMs], at) => atMs - (begins[at - 1]?.[1] ?? 0)))
        .to.deep.equal([0, buildSliceMs, buildSliceMs, ...Array.from({ length: 5 }, () => groupSliceMs)])
    })

    it('lets one of them run at a time while the node is busy, beside those that are not long', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 4 })
      const long = await begun(3)
      isBusy = true
      const going = await slice(long)
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([1, 1, 2])
      const short = request(3)
      await clock.advance(0)
      expect([short.length, queue.running]).to.deep.equal([3, 4])
      short[0]!.leave()
      await clock.advance(0)
      expect([going.size, queue.running]).to.deep.equal([1, 3])
      const [first] = going
      first!.leave()
      await clock.advance(0)
      expect([going.size, queue.running]).to.deep.equal([2, 3])
    })

    it('lets all of them go on when the node is busy no more', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 3 })
      const long = await begun(3)
      isBusy = true
      const [first] = await slice(long)
      isBusy = false
      const going = await slice([first!])
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([1, 3, 0])
    })

    it('lets another one go on in place of one that makes no progress while the node is busy', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 3 })
      const long = await begun(2)
      isBusy = true
      const going = await slice(long)
      expect(going.size).to.equal(1)
      await clock.advance(slowBuildMs)
      expect(going.size).to.equal(2)
    })

    it('does so also when there are too many slow ones', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 3, waitingMax: 10, slowMax: 1 })
      request(1, wasSlow)
      const long = await begun(2)
      isBusy = true
      const going = await slice(long)
      await clock.advance(slowBuildMs)
      expect([going.size, queue.running]).to.deep.equal([2, 3])
    })

    it('lets no further build begin when too many wait to continue', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, waitingMax: 10, slowMax: 3, pausedMax: 1 })
      const turns = request(3)
      await clock.advance(0)
      const firstGoes = await slice([turns[0]!])
      expect([turns.length, firstGoes.size]).to.deep.equal([2, 0])
      await slice([turns[1]!], groupSliceMs)
      expect([turns.length, firstGoes.size]).to.deep.equal([2, 1])
    })

    it('lets a short build that becomes long wait for a place among the long ones', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, shortMax: 1 })
      const long = await begun(1)
      const [becomesLong, next] = [request(1, few), request(1, few)]
      await clock.advance(0)
      expect((await slice(becomesLong, shortBuildMs - 1)).size).to.equal(1)
      const going = await slice(becomesLong, 1)
      expect([going.size, next.length, queue.running, queue.waiting]).to.deep.equal([0, 1, 2, 1])
      long[0]!.leave()
      await clock.advance(0)
      expect([going.size, queue.running, queue.waiting]).to.deep.equal([1, 2, 0])
      const [otherLong, otherShort] = [request(1), request(1, few)]
      await clock.advance(0)
      expect([otherLong.length, otherShort.length]).to.deep.equal([0, 0])
      becomesLong[0]!.leave()
      await clock.advance(0)
      expect([otherLong.length, otherShort.length]).to.deep.equal([1, 0])
      for (const turn of [...next, ...otherLong]) turn.leave()
      await clock.advance(0)
      otherShort[0]!.leave()
      expect([queue.running, clock.pendingTimers]).to.deep.equal([0, 0])
    })

    it('lets a short build that becomes long take a free place among them', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1, shortMax: 1 })
      const [becomesLong, next] = [request(1, few), request(1, few)]
      await clock.advance(0)
      const going = await slice(becomesLong, shortBuildMs)
      const many = request(1)
      await clock.advance(0)
      expect([going.size, next.length, many.length]).to.deep.equal([1, 1, 0])
    })

    it('lets short builds begin and keep their places when too many wait to continue', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 2, shortMax: 1, pausedMax: 0 })
      const long = await begun(2)
      isBusy = true
      await slice(long)
      expect([queue.running, queue.waiting]).to.deep.equal([1, 1])
      const short = request(2, few)
      await clock.advance(0)
      expect([short.length, (await slice([short[0]!], shortBuildMs)).size]).to.deep.equal([1, 1])
      short[0]!.leave()
      await clock.advance(0)
      expect(short.length).to.equal(2)
    })

    it('lets one that became long in a short place run at a time while the node is busy', async () => {
      isBusy = true
      const long = await begun(1)
      const going = await slice(long)
      const short = request(1, few)
      await clock.advance(0)
      const shortGoes = await slice(short, shortBuildMs)
      expect([going.size, shortGoes.size]).to.deep.equal([1, 0])
      long[0]!.leave()
      await clock.advance(0)
      expect(shortGoes.size).to.equal(1)
    })

    it('ends the wait of a build that is cancelled', async () => {
      const ended = new AbortController()
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const long = await enter(ended.signal, many)
      const short = request(1)
      const going = await slice([long])
      ended.abort()
      await clock.advance(0)
      expect([going.size, short.length]).to.deep.equal([1, 1])
      long.leave()
      short[0]!.leave()
      expect([queue.running, queue.waiting]).to.deep.equal([0, 0])
    })

    it('gives no further place to a build that is cancelled after it has gone on', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const ended = new AbortController()
      const long = await enter(ended.signal, many)
      const short = request(1)
      const going = await slice([long])
      short[0]!.leave()
      await clock.advance(0)
      expect(going.size).to.equal(1)
      ended.abort()
      long.leave()
      expect([queue.running, queue.waiting, clock.pendingTimers]).to.deep.equal([0, 0, 0])
    })

    it('lets a build that was cancelled before go on at once', async () => {
      queue = new BuildQueue(clock, () => isBusy, { runningMax: 1 })
      const ended = new AbortController()
      const long = await enter(ended.signal, many)
      const short = request(2)
      ended.abort()
      expect((await slice([long])).size).to.equal(1)
      expect(short.length).to.equal(1)
    })

    async function begun(count: number): Promise<BuildTurn[]> {
      const turns = request(count)
      await clock.advance(0)
      return turns
    }
  })
})
