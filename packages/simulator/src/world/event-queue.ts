import { RealClock } from '@sectional/runtime'
import type { Clock, Timer } from '@sectional/runtime'
import type { Trace } from './trace.ts'

interface QueuedEvent {
  readonly timeMs: number
  readonly order: number
  readonly label: string
  run: (() => void) | undefined
}

/** No correct run has more events at one instant; above this, a loop without progress is assumed. */
const eventsAtOneInstantMax = 200_000

/** Macrotasks that are queued at once. They run in one turn of the event loop of Node.js, which takes time itself. */
const macrotasksQueued = 64

/**
 * Simulated time: a heap of events, ordered by time and then by order of scheduling. Each event runs in its own
 * macrotask, so all promise chains that it starts have settled before the next event runs. Nothing in the process may
 * wait for real time.
 */
export class EventQueue implements Clock {
  readonly #trace: Trace
  readonly #heap: QueuedEvent[] = []
  readonly #real = new RealClock()
  readonly #epochMs: number
  #nowMs = 0
  #order = 0
  #atThisInstant = 0
  /** What the next macrotask does. */
  #next: (() => void) | undefined
  #macrotasks = 0

  constructor(trace: Trace, epochMs: number) {
    this.#trace = trace
    this.#epochMs = epochMs
  }

  now(): number {
    return Math.floor(this.#epochMs + this.#nowMs)
  }

  monotonic(): number {
    return this.#nowMs
  }

  setTimer(ms: number, callback: () => void): Timer {
    return this.schedule(ms, 'wire', callback)
  }

  readonly setImmediate = (callback: () => void): void => {
    this.schedule(0, 'immediate', callback)
  }

  schedule(delayMs: number, label: string, run: () => void): Timer {
    const event: QueuedEvent = { timeMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, label, run }
    this.#push(event)
    return { cancel: () => { event.run = undefined } }
  }

  sleep(ms: number, label = 'sleep'): Promise<void> {
    return new Promise(resolve => { this.schedule(ms, label, resolve) })
  }

  /**
   * Runs events until `done` returns true.
   * @param untilMs simulated time at which it stops
   * @returns whether `done` returned true
   */
  run(done: () => boolean, untilMs: number): Promise<boolean> {
    if (this.#next !== undefined) throw new Error('the events are being run already')
    return new Promise((resolve, reject) => {
      const step = (): void => {
        try {
          const isDone = done()
          if (isDone || !this.#runEvent(untilMs)) return resolve(isDone)
        } catch (error) {
          return reject(error)
        }
        this.#inNextMacrotask(step)
      }
      this.#inNextMacrotask(step)
    })
  }

  /** Runs the next event. Returns false when there is none until then. */
  #runEvent(untilMs: number): boolean {
    for (;;) {
      const event = this.#pop()
      if (event === undefined) return false
      if (event.timeMs > untilMs) {
        this.#push(event)
        return false
      }
      if (event.run === undefined) continue
      this.#advance(event.timeMs)
      this.#trace.event(event.timeMs, event.label)
      event.run()
      return true
    }
  }

  #advance(timeMs: number): void {
    this.#atThisInstant = timeMs === this.#nowMs ? this.#atThisInstant + 1 : 0
    if (this.#atThisInstant > eventsAtOneInstantMax) {
      throw new Error(`more than ${eventsAtOneInstantMax} events at ${timeMs} ms: time stands still`)
    }
    this.#nowMs = timeMs
  }

  /** Node.js runs the promise chains that a macrotask starts before the next macrotask. */
  #inNextMacrotask(step: () => void): void {
    this.#next = step
    if (this.#macrotasks > 0) return
    for (; this.#macrotasks < macrotasksQueued; this.#macrotasks++) this.#real.setImmediate(this.#macrotask)
  }

  readonly #macrotask = (): void => {
    this.#macrotasks--
    const next = this.#next
    this.#next = undefined
    next?.()
  }

  #push(event: QueuedEvent): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(event)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as QueuedEvent
      if (!isBefore(event, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = event
  }

  #pop(): QueuedEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as QueuedEvent, heap[child] as QueuedEvent)) child++
      if (!isBefore(heap[child] as QueuedEvent, last)) break
      heap[at] = heap[child] as QueuedEvent
      at = child
    }
    heap[at] = last
    return first
  }
}

function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.timeMs < b.timeMs || (a.timeMs === b.timeMs && a.order < b.order)
}
