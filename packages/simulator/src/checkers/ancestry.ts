import type { Branch } from '@sectional/core'
import { makesRevision } from '../workload/history.ts'
import { isShared } from '../workload/shared-values.ts'
import type { Operation } from '../workload/history.ts'
import { isAncestor } from './disk-contents.ts'

/**
 * The ancestors of one document's revisions, from the requests of clients and from the document's tree. The tree alone
 * is not enough, because a small `_revs_limit` removes ancestors from it.
 */
export class Ancestry {
  readonly #branches: readonly Branch[]
  readonly #parents = new Map<string, string>()

  /**
   * @param operations operations on this document, including reads, which show the revisions of writes without an
   * answer
   */
  constructor(operations: readonly Operation[], branches: readonly Branch[]) {
    this.#branches = branches
    const read = new Map(operations.flatMap(({ kind, readValue, revision }) => {
      const tells = kind === 'read' && readValue !== undefined && !isShared(readValue) && revision !== undefined
      return tells ? [[readValue, revision] as const] : []
    }))
    for (const operation of operations) {
      const revision = operation.revision ?? (operation.value === '' ? undefined : read.get(operation.value))
      const parent = editedRevision(operation)
      if (makesRevision(operation) && revision !== undefined && parent !== null) this.#parents.set(revision, parent)
    }
  }

  isAncestor(ancestor: string, revision: string): boolean {
    const seen = new Set<string>()
    for (let each: string
      | undefined = revision; each !== undefined && !seen.has(each); each = this.#parents.get(each)) {
      if (seen.size > 0 && each === ancestor) return true
      if (isAncestor(this.#branches, ancestor, each)) return true
      seen.add(each)
    }
    return false
  }
}

/** Returns the parent of the revision that the operation writes, or null when it has none. */
export function editedRevision({ parent, paths, kind }: Operation): string | null {
  if (kind !== 'graft') return parent
  const [path] = paths ?? []
  return path?.ids[1] === undefined ? null : `${path.start - 1}-${path.ids[1]}`
}
