import { parseRevision } from '@sectional/core'
import type { Edit, FinalDocument, Read } from './recorded-history.ts'

/** A revision that somebody was shown, with what was shown of it. */
export type Shown = Pick<Read, 'revision' | 'content' | 'parent' | 'endMs'> & { readonly deleted?: boolean }

/** The edits of one document, and the ancestors of its revisions as far as requests, reads and the tree show them. */
export class DocumentHistory {
  readonly document: string
  readonly edits: readonly Edit[]
  readonly reads: readonly Read[]
  /** The document at rest; undefined when it does not exist, or when the cluster is not at rest. */
  readonly final: FinalDocument | undefined
  readonly #parents = new Map<string, string>()
  /** Revisions that acknowledged edits have made, by parent and content. */
  readonly #made = new Map<string, string>()

  constructor(document: string, edits: readonly Edit[], reads: readonly Read[], final: FinalDocument | undefined) {
    this.document = document
    this.edits = edits
    this.reads = reads
    this.final = final
    for (const { revision, parent } of reads) if (revision !== null && parent) this.#parents.set(revision, parent)
    for (const edit of edits) this.#learn(edit)
    for (const { revisions } of final?.branches ?? []) this.#learnPath(revisions)
    this.#learnFromBodies()
  }

  #learn(edit: Edit): void {
    const { revision, parent, grafted, ancestors = [] } = edit
    if (revision === undefined || !mayTakeEffect(edit)) return
    this.#learnPath([revision, ...ancestors])
    if (parent !== null) this.#parents.set(revision, parent)
    const key = grafted ? undefined : editKey(edit)
    if (key !== undefined) this.#made.set(key, revision)
  }

  /** Learns the parents of revisions whose edits got no answer, where their content tells which edit made them. */
  #learnFromBodies(): void {
    const learned = new Set<string>()
    for (const read of this.reads) {
      const { content, revision } = read
      if (revision === null || content === undefined || this.#parents.has(revision) || learned.has(revision)) continue
      learned.add(revision)
      const [parent, ...others] = new Set(this.makers(read).filter(mayTakeEffect).map(edit => edit.parent))
      if (parent != null && others.length === 0) this.#parents.set(revision, parent)
    }
  }

  #learnPath(revisions: readonly string[]): void {
    revisions.slice(1).forEach((parent, index) => this.#parents.set(revisions[index]!, parent))
  }

  /** Returns the parent of the revision, or undefined when it has none or is not known. */
  parentOf(revision: string): string | undefined {
    return this.#parents.get(revision)
  }

  isAncestor(ancestor: string, revision: string): boolean {
    const oldest = generationOf(ancestor)
    for (let at = this.#parents.get(revision); at !== undefined && generationOf(at) >= oldest;
      at = this.#parents.get(at)) {
      if (at === ancestor) return true
    }
    return false
  }

  /** Returns the edits that may have made the revision, including those that were refused. */
  makers(shown: Shown): Edit[] {
    return this.edits.filter(edit => edit.startMs <= shown.endMs && this.#canMake(edit, shown))
  }

  #canMake(edit: Edit, { revision, content, parent, deleted }: Shown): boolean {
    if (revision === null) return false
    if (edit.grafted && edit.ancestors?.includes(revision)) return true
    const made = edit.revision ?? this.#made.get(editKey(edit) ?? '')
    if (made !== undefined && made !== revision) return false
    if (edit.parent !== null) {
      if (generationOf(revision) !== generationOf(edit.parent) + 1) return false
      if (parent !== undefined && parent !== edit.parent) return false
    } else if (!edit.grafted && !this.#mayFollowTombstone(generationOf(revision))) return false
    if (deleted !== undefined && deleted !== edit.deleted) return false
    return content === undefined || edit.content === undefined || content === edit.content
  }

  /** Returns whether an edit without a parent may make a revision of the generation: the first, or after a deletion. */
  #mayFollowTombstone(generation: number): boolean {
    return generation === 1 || this.edits.some(edit => edit.deleted && mayTakeEffect(edit)
      && (madeGeneration(edit) ?? generation - 1) === generation - 1)
  }
}

/** Returns the generation of the revision that the edit makes, or undefined when it is not known. */
function madeGeneration({ parent, revision }: Edit): number | undefined {
  if (revision !== undefined) return generationOf(revision)
  return parent === null ? undefined : generationOf(parent) + 1
}

export function mayTakeEffect({ outcome }: Edit): boolean {
  return outcome !== 'conflict' && outcome !== 'refused'
}

export function isAcknowledged({ outcome }: Edit): boolean {
  return outcome === 'done' || outcome === 'accepted'
}

/**
 * Returns the same text for edits that make the same revision; undefined when that is not known: the parent of an edit
 * without a parent may be a tombstone.
 */
export function editKey({ parent, content, deleted, revision }: Edit): string | undefined {
  if (content === undefined) return undefined
  if (parent === null && (revision === undefined || generationOf(revision) > 1)) return undefined
  return JSON.stringify([parent, content, deleted])
}

export function generationOf(revision: string): number {
  return parseRevision(revision).generation
}
