/** Builds that have given way are `paused`, and those that have not begun are `waiting`. */
export type QueuedKind = 'paused' | 'waiting'

/** In the order in which they get places. */
const kinds = ['paused', 'waiting'] as const

/** Gives a place to one build. */
type Start = () => void

type Builds = Readonly<Record<QueuedKind, Set<Start>>>

/** The builds that have no place, by group. */
export class QueuedBuilds<Group> {
  /** The groups that have such builds, in the order of their turns. */
  readonly #groups = new Map<Group, Builds>()
  readonly #counts = { paused: 0, waiting: 0 }

  get size(): number { return this.#counts.paused + this.#counts.waiting }
  get paused(): number { return this.#counts.paused }

  has(group: Group, start: Start): boolean {
    const builds = this.#groups.get(group)
    return builds !== undefined && kinds.some(kind => builds[kind].has(start))
  }

  /** Returns whether there are builds of another group that satisfies a condition. */
  hasOther(group: Group, condition: (other: Group) => boolean): boolean {
    return [...this.#groups.keys()].some(other => other !== group && condition(other))
  }

  /** Adds a build behind the others of its group. A group that had none gets the last turn. */
  add(group: Group, kind: QueuedKind, start: Start): void {
    let builds = this.#groups.get(group)
    if (builds === undefined) this.#groups.set(group, builds = { paused: new Set(), waiting: new Set() })
    builds[kind].add(start)
    this.#counts[kind]++
  }

  /** Gives the next turn to the first group that satisfies a condition. Returns whether there is one. */
  prefer(condition: (group: Group) => boolean): boolean {
    const preferred = [...this.#groups].find(([group]) => condition(group))
    if (preferred === undefined) return false
    const others = [...this.#groups].filter(entry => entry[0] !== preferred[0])
    this.#groups.clear()
    for (const [group, builds] of [preferred, ...others]) this.#groups.set(group, builds)
    return true
  }

  /** Gives a group the last turn. */
  postpone(group: Group): void {
    const builds = this.#groups.get(group)
    if (builds === undefined) return
    this.#groups.delete(group)
    this.#groups.set(group, builds)
  }

  remove(group: Group, start: Start): void {
    const builds = this.#groups.get(group)
    if (builds === undefined) return
    for (const kind of kinds) if (builds[kind].delete(start)) this.#counts[kind]--
    if (builds.paused.size + builds.waiting.size === 0) this.#groups.delete(group)
  }

  /** Removes the next build of those kinds that may get a place. */
  take(may: (kind: QueuedKind, group: Group) => boolean): Start | undefined {
    for (const [group, builds] of this.#groups) {
      for (const kind of kinds) {
        const [start] = may(kind, group) ? builds[kind] : []
        if (start === undefined) continue
        this.remove(group, start)
        return start
      }
    }
    return undefined
  }
}
