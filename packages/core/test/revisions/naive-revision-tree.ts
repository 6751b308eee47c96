import type { Leaf, RevisionPath } from '../../src/index.ts'

/** An edit as the naive revision tree stores it. That tree computes everything from the list of its edits. */
export interface StoredEdit { readonly path: RevisionPath; readonly deleted: boolean }

export class NaiveRevisionTree {
  readonly #edits: StoredEdit[] = []

  add(edit: StoredEdit): void {
    this.#edits.push(edit)
  }

  revisions(): Set<string> {
    return new Set(this.#edits.flatMap(({ path }) => path.ids.map((id, i) => `${path.start - i}-${id}`)))
  }

  /** Returns the leaves, winner first. */
  leaves(): Leaf[] {
    const parents = new Set(
      this.#edits.flatMap(({ path }) => path.ids.slice(1).map((id, i) => `${path.start - 1 - i}-${id}`)),
    )
    return [...this.revisions()].filter(revision =>
      !parents.has(revision)).map(revision => ({ revision, deleted: this.#deleted(revision) }))
      .sort((a, b) => this.#rank(b).localeCompare(this.#rank(a), 'en-US') || 0)
  }

  /** Whether the first edit of that revision was a deletion. */
  #deleted(revision: string): boolean {
    return this.#edits.find(({ path }) => `${path.start}-${path.ids[0]}` === revision)?.deleted ?? false
  }

  #rank({ revision, deleted }: Leaf): string {
    const [generation, hash] = revision.split('-')
    return (deleted ? '0' : '1') + generation!.padStart(6, '0') + Buffer.from(hash!).toString('hex')
  }
}
