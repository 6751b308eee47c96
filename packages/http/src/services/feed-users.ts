/**
 * Ends the open feeds of users who could not open them any more: they were removed, or have another password, or roles
 * that do not suffice, or their token has expired. Some users are examined at a time, so that the cost for a node does
 * not depend on their number.
 */
import type { ControlPlane } from '@sectional/cluster'
import type { Clock, Timer } from '@sectional/runtime'
import { mayFollow } from '../authentication/authorization.ts'
import type { User } from '../request/user.ts'
import type { OpenFeed } from './open-feed.ts'

/** Time between two examinations, in milliseconds. */
const pauseMs = 3_000
/** Users of one examination. Most accounts have to be read again. */
const examinedMax = 300

/**
 * Returns the present user of a feed; null when the credentials are not valid any more. Rejects when that is not known.
 */
export type FindPresentUser = (feed: OpenFeed) => Promise<User | null>

export class FeedUsers {
  readonly #clock: Clock
  readonly #control: Pick<ControlPlane, 'state'>
  readonly #find: FindPresentUser
  /** The feeds by the credentials of their users. */
  readonly #feeds = new Map<string, Set<OpenFeed>>()
  /** Those that are still to be examined in this round. */
  #round: MapIterator<Set<OpenFeed>> | undefined
  #timer: Timer | undefined

  constructor(clock: Clock, control: Pick<ControlPlane, 'state'>, find: FindPresentUser) {
    this.#clock = clock
    this.#control = control
    this.#find = find
  }

  add(feed: OpenFeed): void {
    const key = credentialsOf(feed)
    if (key === null) return
    const others = this.#feeds.get(key)
    if (others === undefined) this.#feeds.set(key, new Set([feed]))
    else others.add(feed)
    this.#timer ??= this.#examineLater()
  }

  delete(feed: OpenFeed): void {
    const key = credentialsOf(feed)
    const others = key === null ? undefined : this.#feeds.get(key)
    if (others?.delete(feed) && others.size === 0) this.#feeds.delete(key!)
    if (this.#feeds.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #examineLater(): Timer {
    return this.#clock.setTimer(pauseMs, () => { void this.#examine() })
  }

  async #examine(): Promise<void> {
    const timer = this.#timer
    try {
      for (let left = Math.min(examinedMax, this.#feeds.size); left > 0; left--) {
        const feeds = this.#next()
        if (feeds !== undefined) this.#endRefused(feeds, await this.#find([...feeds][0]!))
      }
    } catch {
      // The account cannot be read. Nobody could log in now, so the feeds continue, and the next users come later.
    }
    if (this.#timer === timer && timer !== undefined) this.#timer = this.#examineLater()
  }

  #next(): Set<OpenFeed> | undefined {
    const next = this.#round?.next()
    if (next?.done === false) return next.value
    this.#round = this.#feeds.values()
    return this.#round.next().value
  }

  #endRefused(feeds: Set<OpenFeed>, user: User | null): void {
    const databases = this.#control.state()?.databases
    for (const feed of [...feeds]) {
      // Deleted databases end their feeds themselves.
      const database = databases?.get(feed.database.name) ?? feed.database
      if (user === null || !mayFollow(user, database)) feed.end()
    }
  }
}

/** Returns a text that is the same for feeds of the same user and credentials; null when these need no examination. */
function credentialsOf({ user: { name, salt, handler }, authorization }: OpenFeed): string | null {
  if (handler === 'jwt') return `jwt ${authorization}`
  return salt === undefined ? null : JSON.stringify([name, salt])
}
