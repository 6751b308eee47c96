export type ShardChangeKind = 'create' | 'drop' | 'rebuild'

interface Change { readonly kind: ShardChangeKind; readonly result: Promise<unknown>; readonly ended: Promise<void> }

/** Runs creations, drops and rebuilds of one shard one after the other, in the order in which they are requested. */
export class ShardChanges {
  /** The newest change of each shard of which a change has not ended, by the shard's name. */
  readonly #newest = new Map<string, Change>()

  /** Returns the kind of the newest change of the shard; undefined when all have ended. */
  newest(name: string): ShardChangeKind | undefined {
    return this.#newest.get(name)?.kind
  }

  /**
   * Runs the change after those that were requested before; at once when there are none.
   * @returns the result of `work`
   */
  run<Result>(name: string, kind: ShardChangeKind, work: () => Promise<Result>): Promise<Result> {
    const before = this.#newest.get(name)
    const result = before === undefined ? work() : before.ended.then(work)
    const end = (): void => { if (this.#newest.get(name) === change) this.#newest.delete(name) }
    const change: Change = { kind, result, ended: result.then(end, end) }
    this.#newest.set(name, change)
    return result
  }

  /** The same for a change that need not run again when the newest change is one of the same kind. */
  join<Result>(name: string, kind: ShardChangeKind, work: () => Promise<Result>): Promise<Result> {
    const newest = this.#newest.get(name)
    return newest?.kind === kind ? newest.result as Promise<Result> : this.run(name, kind, work)
  }

  /** Resolves when all changes have ended that were requested so far. */
  async ended(): Promise<void> {
    await Promise.all(Array.from(this.#newest.values(), ({ ended }) => ended))
  }
}
