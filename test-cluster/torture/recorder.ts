/** Records what clients sent and were answered, by the monotonic clock of this process. */
import type {
  Edit, EditOutcome, FinalDocument, LocalRead, LocalWrite, Read, RecordedHistory,
} from '@sectional/simulator/history'
import { majority, replicasPerShard } from './torture-database.ts'

export type { RecordedHistory }
export type Timed = Pick<Edit, 'label' | 'document' | 'startMs' | 'endMs'>

/** What a client knows of an edit when it sends it. */
export interface SentEdit {
  readonly document: string
  readonly parent: string | null
  /** Identifies the body; a deletion has the empty one. */
  readonly content: string
  readonly deleted: boolean
  readonly w?: number
}

/** One request that has been sent, and that was not answered yet. */
export interface Invocation {
  readonly label: string
  readonly startMs: number
  /** Time since which the cluster was without faults when the request was sent. */
  readonly calmSinceMs: number
}

type ShownRow = Pick<Read, 'document' | 'revision' | 'content'>

/** Adds a row with the revision null for each document that the list does not show. */
export function withMissing(rows: readonly ShownRow[], documents: Iterable<string>): ShownRow[] {
  const shown = new Set(rows.map(({ document }) => document))
  return [...rows, ...[...documents].filter(each => !shown.has(each)).map(document => ({ document, revision: null }))]
}

/** Milliseconds after a fault until links are up again and a read meets its quorum. */
const calmMsMin = 10_000

export class Recorder {
  readonly #edits: Edit[] = []
  readonly #reads: Read[] = []
  readonly #localWrites: LocalWrite[] = []
  readonly #localReads: LocalRead[] = []
  readonly #documents = new Set<string>()
  readonly #calmSinceMs: () => number
  #requests = 0
  #finals: ReadonlyMap<string, FinalDocument> | undefined
  #restMs: number | undefined

  /** @param calmSinceMs returns since when there are no faults; Infinity while there is one */
  constructor(calmSinceMs: () => number) {
    this.#calmSinceMs = calmSinceMs
  }

  /** Names of all documents that an edit was sent for. */
  get documents(): ReadonlySet<string> {
    return this.#documents
  }

  get requests(): number {
    return this.#requests
  }

  begin(what: string): Invocation {
    return {
      label: `#${this.#requests++} (${what})`, startMs: performance.now(), calmSinceMs: this.#calmSinceMs(),
    }
  }

  /** Records one edit with its outcome. Of an edit with an unknown outcome, the end is not known either. */
  edited(invocation: Invocation, sent: SentEdit, outcome: EditOutcome, revision?: string): void {
    const { w = majority, ...edit } = sent
    this.#documents.add(sent.document)
    this.#edits.push({
      ...edit, ...this.#times(invocation, outcome), outcome, exclusive: w >= majority, kept: revision !== undefined,
      copies: w, ...(revision !== undefined && { revision }),
    })
  }

  /** Records a read of one document with r replicas. A read without faults sees the edits of which it meets a copy. */
  read(invocation: Invocation, read: Pick<Read, 'document' | 'revision' | 'content' | 'parent'>, r = majority): void {
    this.#reads.push({ ...read, ...this.#times(invocation, 'done'), ...this.#freshness(invocation, r) })
  }

  /**
   * Records what a list or a feed showed.
   *
   * @param r replicas of each shard that were read. 0: the rows may be stale. Otherwise a list without faults sees the
   * edits of which it meets a copy, and rows with the revision null say which documents it does not show
   */
  listed(invocation: Invocation, rows: readonly Omit<Read, 'label' | 'startMs' | 'endMs'>[], r = 0): void {
    const times = this.#times(invocation, 'done')
    const fresh = r === 0 ? {} : this.#freshness(invocation, r)
    for (const row of rows) this.#reads.push({ ...row, ...times, ...fresh, label: `a row of ${times.label}` })
  }

  localWritten(
    invocation: Invocation, document: string, content: string | null, outcome: LocalWrite['outcome'],
  ): void {
    this.#localWrites.push({ document, content, outcome, ...this.#times(invocation, outcome) })
  }

  localRead(invocation: Invocation, document: string, content: string | null): void {
    const fresh = this.#restMs !== undefined
    this.#localReads.push({ document, content, fresh, ...this.#times(invocation, 'done') })
  }

  /** From now on all replicas are equal, and every read must show the winner. */
  rest(): void {
    this.#restMs = performance.now()
  }

  /** Records the revision trees at rest. */
  finish(finals: ReadonlyMap<string, FinalDocument>): void {
    this.#finals = finals
  }

  history(): RecordedHistory {
    return {
      edits: this.#edits, reads: this.#reads, localWrites: this.#localWrites, localReads: this.#localReads,
      ...(this.#finals !== undefined && { finals: this.#finals }),
      ...(this.#restMs !== undefined && { restMs: this.#restMs }),
    }
  }

  #freshness({ startMs, calmSinceMs }: Invocation, r: number): Pick<Read, 'freshSinceMs' | 'copiesMin'> {
    const isCalm = calmSinceMs <= startMs - calmMsMin && this.#calmSinceMs() === calmSinceMs
    return isCalm ? { freshSinceMs: startMs, copiesMin: replicasPerShard - r + 1 } : {}
  }

  #times({ label, startMs }: Invocation, outcome: EditOutcome): Pick<Timed, 'label' | 'startMs' | 'endMs'> {
    return { label, startMs, endMs: outcome === 'unknown' ? Infinity : performance.now() }
  }
}
