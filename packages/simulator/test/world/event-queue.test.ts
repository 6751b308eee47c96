import { expect } from 'chai'
import { EventQueue } from '../../src/world/event-queue.ts'
import { NodeClock } from '../../src/world/node-clock.ts'
import { Trace } from '../../src/world/trace.ts'

describe('simulated time', () => {
  it('runs events by time, then in the order of scheduling, each after the promises of the one before', async () => {
    const queue = new EventQueue(new Trace(), 0)
    const heard: string[] = []
    const note = (name: string) => (): void => { heard.push(`${queue.monotonic()} ${name}`) }
    queue.schedule(20, '', note('late'))
    queue.schedule(10, '', () => {
      note('first')()
      void Promise.resolve().then(() => Promise.resolve()).then(note('what follows from it'))
    })
    queue.schedule(10, '', note('second'))
    queue.schedule(15, '', note('cancelled')).cancel()
    expect(await queue.run(() => false, 100)).to.equal(false)
    expect(heard).to.deep.equal(['10 first', '10 what follows from it', '10 second', '20 late'])
  })

  it('orders many random events as sorting does', async () => {
    const queue = new EventQueue(new Trace(), 0)
    const times = Array.from({ length: 500 }, (_, index) => (index * 7919) % 101)
    const heard: number[] = []
    for (const [index, time] of times.entries()) queue.schedule(time, '', () => { heard.push(index) })
    await queue.run(() => heard.length === times.length, 1000)
    expect(heard).to.deep.equal([...times.keys()].sort((a, b) => times[a]! - times[b]! || a - b))
  })

  it('drifts, jumps, and calls back late and in order after a pause', async () => {
    const queue = new EventQueue(new Trace(), 1000)
    const clock = new NodeClock(queue, 'n', 2, 0)
    const heard: string[] = []
    for (const ms of [20, 10]) clock.setTimer(ms, () => { heard.push(`${ms} at ${clock.monotonic()}`) })
    clock.setTimer(15, () => { heard.push('cancelled') }).cancel()
    clock.pause()
    await queue.run(() => false, 15)
    expect(heard).to.deep.equal([])
    queue.schedule(5, '', () => clock.continue())
    await queue.run(() => false, 100)
    expect(heard.map(line => line.split(' ')[0])).to.deep.equal(['10', '20'])
    clock.jump(3_600_000)
    expect(clock.now()).to.equal(1000 + Math.floor(clock.monotonic()) + 3_600_000)
  })

  it('is counted by the clock of a machine without its pauses', async () => {
    const queue = new EventQueue(new Trace(), 0)
    const clock = new NodeClock(queue, 'a', 1, 0)
    const seen: number[] = []
    const look = (): void => { seen.push(clock.awakeMs) }
    queue.schedule(100, '', () => clock.pause())
    queue.schedule(150, '', look)
    queue.schedule(300, '', () => clock.continue())
    queue.schedule(310, '', look)
    queue.schedule(400, '', () => clock.pause())
    queue.schedule(500, '', look)
    await queue.run(() => seen.length === 3, 1000)
    expect(seen).to.deep.equal([100, 110, 200])
  })
})
