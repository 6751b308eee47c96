/**
 * What clients did and what they were answered. A recorder fills in these values, from a simulation or from real nodes,
 * and `checkHistory` judges them. All times are milliseconds of one clock that never goes back.
 */
export interface RecordedHistory {
  readonly edits: readonly Edit[]
  readonly reads: readonly Read[]
  readonly localWrites: readonly LocalWrite[]
  readonly localReads: readonly LocalRead[]
  /** Default: none. */
  readonly names?: readonly NameRequest[]
  /**
   * The documents at rest, by name: the cluster has been without faults until all replicas were equal. Undefined while
   * the cluster is not at rest. A document that is not listed does not exist.
   */
  readonly finals?: ReadonlyMap<string, FinalDocument>
  /**
   * Whether documents may have forgotten that a revision was replaced, as with a small `_revs_limit`. A replaced
   * revision may then become the winner again when its successor was deleted. Default: false.
   */
  readonly stemmed?: boolean
  /** Reads that begin at this time or later show the winner at rest. Default: never. */
  readonly restMs?: number
}

/** A request or a read that a finding can refer to. */
export interface Timed {
  /** How findings name it, such as `#12 (write by c1 through node 2)`. */
  readonly label: string
  /** Name of the document, unique in the history, such as `database/id`. */
  readonly document: string
  readonly startMs: number
  /** Infinity when no answer arrived. */
  readonly endMs: number
}

export type EditOutcome =
  /** Acknowledged by w replicas (201, or 200 for a deletion). */
  | 'done'
  /** Acknowledged below w (202). */
  | 'accepted'
  /** The answer was a conflict (409): the edit never takes effect. */
  | 'conflict'
  /** The answer says for another reason that nothing was written: the edit never takes effect. */
  | 'refused'
  /** No answer, a timeout or a 5xx: the edit may have taken effect, or may still do so. */
  | 'unknown'

/** One edit of one document. Each row of a bulk request is an edit of its own. */
export interface Edit extends Timed {
  readonly outcome: EditOutcome
  /** The revision that the edit replaces; null: the document must not exist, or must be deleted. */
  readonly parent: string | null
  /**
   * Identifies the body and the attachments. Edits of one parent with equal content and an equal `deleted` make the
   * same revision. Undefined when the client does not know the whole content: such an edit may show any content.
   */
  readonly content: string | undefined
  readonly deleted: boolean
  /** The revision of the answer. For a graft: the revision of the request. */
  readonly revision?: string
  /**
   * Whether the revision was created elsewhere (`new_edits=false`). A graft is no compare-and-set and may bring
   * ancestors.
   */
  readonly grafted?: boolean
  /** For a graft: the ancestors of the revision in the request. */
  readonly ancestors?: readonly string[]
  /** Whether 201 promises that no other exclusive edit of the same parent gets 201. */
  readonly exclusive: boolean
  /** Whether an acknowledgement promises that the document has the revision at rest, as a leaf or as an ancestor. */
  readonly kept: boolean
  /** Number of replicas that had the revision when it was acknowledged with 201; 0 when no read must see it. */
  readonly copies: number
}

/**
 * One document as a client was shown it: by a read, a row of a list or of a changes feed, or a leaf on a disk. A
 * document that a list does not show is a read with the revision null (`listReads`).
 */
export interface Read extends Timed {
  /** The revision; null when the document was not found or deleted. */
  readonly revision: string | null
  /** The content, if it was shown. */
  readonly content?: string
  /** The revision's parent, if it was shown. */
  readonly parent?: string
  /**
   * The read must see every edit that was acknowledged with 201 at or before this time, by at least `copiesMin`
   * replicas, unless later edits have replaced it. Undefined when the read may be stale.
   */
  readonly freshSinceMs?: number
  /** Default: 1. */
  readonly copiesMin?: number
  /** Whether the read showed all leaves, so that it need not show the winner (`open_revs`, a feed). */
  readonly ofLeaf?: boolean
}

/** One write of a local document, for which the last writer wins. */
export interface LocalWrite extends Timed {
  /** `conflict` does not occur. */
  readonly outcome: Exclude<EditOutcome, 'conflict'>
  /** Identifies the body; null: a deletion. */
  readonly content: string | null
}

/** One read of a local document. */
export interface LocalRead extends Timed {
  /** null: it was not found. */
  readonly content: string | null
  /** Whether the read must see the writes that were acknowledged with 201 before it began. */
  readonly fresh: boolean
}

/** A request that tells whether a database of a name exists, or changes it. */
export interface NameRequest extends Omit<Timed, 'document'> {
  readonly name: string
  /** A creation or a deletion takes effect only if it changes something; `see` and `miss` only look. */
  readonly does: 'create' | 'delete' | 'see' | 'miss'
  /** Whether it was answered with success. If not, a creation or a deletion may take effect at any later time. */
  readonly certain: boolean
}

/** The revision tree of a document at rest. */
export interface FinalDocument {
  readonly branches: readonly FinalBranch[]
}

export interface FinalBranch {
  /** The leaf and its ancestors, newest first, as far as the document still has them. */
  readonly revisions: readonly string[]
  readonly deleted: boolean
  /** The content of the leaf, if it is known. */
  readonly content?: string
}

/** A list of documents: `_all_docs`, a changes feed since 0, or the keys that were asked for. */
export interface ListAnswer extends Omit<Timed, 'document'>, Pick<Read, 'freshSinceMs' | 'copiesMin'> {
  readonly rows: readonly Pick<Read, 'document' | 'revision' | 'content'>[]
}

/**
 * Returns a read for each row, and one with the revision null for each document that the list does not show.
 *
 * @param documents names of all documents that the list would show if they existed
 */
export function listReads({ rows, label, ...list }: ListAnswer, documents: Iterable<string>): Read[] {
  const shown = new Set(rows.map(({ document }) => document))
  const missing = [...documents].filter(document => !shown.has(document))
  return [
    ...rows.map(row => ({ ...list, ...row, label: `a row of ${label}` })),
    ...missing.map(document => ({ ...list, document, revision: null, label })),
  ]
}
