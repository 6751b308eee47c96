/** Translates the operations of a run into the history that the rules in `history/` judge. */
import { parseRevision } from '@sectional/core'
import type { RevisionPath } from '@sectional/core'
import { majority } from '@sectional/server'
import { listReads } from '../history/index.ts'
import type { Edit, EditOutcome, FinalDocument, LocalRead, LocalWrite, NameRequest, Read } from '../history/index.ts'
import type { RecordedHistory } from '../history/index.ts'
import { makesRevision } from '../workload/history.ts'
import type { Operation, ShownRow } from '../workload/history.ts'
import { editedRevision } from './ancestry.ts'
import { describe } from './final-state.ts'
import type { FinalState } from './final-state.ts'
import { revsLimitMin } from './one-branch.ts'
import { PurgeRecords } from './purge-records.ts'

/**
 * Milliseconds after a fault until anti-entropy has brought every replica what it had missed, at the latest
 * (docs/reliability.md#guarantees-for-documents).
 */
const caughtUpMs = 80_000
/** Milliseconds until an acknowledged edit has reached every replica, when no fault disturbs the cluster. */
const spreadMs = 5000
/** A replica that has missed this many revisions of a document may take an old leaf for a branch of its own. */
const shortHistoryRevs = 100

/** Translates the operations of clients. A document belongs to one incarnation of its database. */
export class RecordedOperations {
  readonly #state: FinalState
  readonly #purges: PurgeRecords
  readonly #incarnations: ReadonlyMap<string, ReadonlySet<string>>
  readonly #generations = new Map<string, { readonly startMs: number; readonly generation: number }[]>()

  constructor(state: FinalState) {
    this.#state = state
    this.#purges = new PurgeRecords(state.operations)
    const incarnations = new Map<string, Set<string>>()
    for (const operation of state.operations) {
      const { database, incarnationBefore, incarnationAfter } = operation
      const known = incarnations.get(database) ?? new Set()
      incarnations.set(database, known)
      for (const each of [incarnationBefore, incarnationAfter]) if (each !== undefined) known.add(each)
      if (makesRevision(operation)) this.#noteGenerations(operation)
    }
    this.#incarnations = incarnations
  }

  #noteGenerations({ database, id, startMs, revision, parent, paths = [] }: Operation): void {
    const noted = this.#generations.get(`${database}/${id}`) ?? []
    this.#generations.set(`${database}/${id}`, noted)
    const named = [revision, parent].flatMap(each => each == null ? [] : [parseRevision(each).generation])
    noted.push({ startMs, generation: Math.max(0, ...named, ...paths.map(({ start }) => start)) })
  }

  history(): RecordedHistory {
    const { operations, restMs } = this.#state
    const edits = operations.filter(makesRevision).flatMap(operation => this.#edits(operation))
    return {
      edits, reads: this.#reads(edits), ...this.#locals(), names: this.#names(),
      stemmed: this.#state.revsLimit < shortHistoryRevs,
      ...(restMs !== undefined && { restMs, finals: this.#finals() }),
    }
  }

  /** An operation that may belong to several incarnations becomes an edit of unknown outcome in each of them. */
  #edits(operation: Operation): Edit[] {
    const certain = certainIncarnation(operation)
    const edit = this.#edit(operation, certain)
    if (certain !== undefined) return [{ ...edit, document: documentName(operation.database, certain, operation.id) }]
    const outcome = edit.outcome === 'conflict' || edit.outcome === 'refused' ? edit.outcome : 'unknown'
    return [...this.#incarnations.get(operation.database) ?? []].map(incarnation =>
      ({ ...edit, outcome, document: documentName(operation.database, incarnation, operation.id) }))
  }

  #edit(operation: Operation, incarnation: string | undefined): Edit {
    const { kind, database, id, startMs, endMs, outcome, w, activeBefore, value, tombstone, revision } = operation
    const { lossMs, lostDisks, revsLimit } = this.#state
    const purgedMs = this.#purges.firstMs(database, id)
    const isDisturbed = endMs >= Math.min(lossMs, purgedMs)
    const path = kind === 'graft' ? operation.paths?.[0] : undefined
    const grafted = path === undefined ? undefined : revisionsOf(path)
    const wanted = Math.min(w ?? majority(activeBefore), activeBefore)
    const n = this.#replicasOf(database, incarnation)
    return {
      label: describe(operation), document: '', startMs, endMs,
      outcome: this.#outcome(operation, isDisturbed || n === 0),
      parent: editedRevision(operation), deleted: kind === 'delete' || tombstone === true,
      content: kind === 'attach' || kind === 'detach' ? undefined : value,
      exclusive: !isDisturbed && revsLimit >= revsLimitMin && wanted >= majority(activeBefore)
        && this.#revisionsSince(operation) < revsLimit,
      kept: revision !== undefined && n > 0 && (outcome === 'done' || lostDisks === 0)
        && !this.#purges.mayHaveRemoved(database, id, revision),
      copies: purgedMs < Infinity ? 0 : Math.min(w ?? majority(n), n),
      ...(grafted === undefined
        ? revision !== undefined && { revision }
        : { grafted: true, revision: grafted[0]!, ancestors: grafted.slice(1) }),
    }
  }

  /**
   * A conflict needs no cause where the parent may have been lost, or where few ancestors are kept.
   *
   * @param isGone whether a disk was lost or revisions were purged before the answer, or the database was deleted
   */
  #outcome({ conflict, outcome, kind }: Operation, isGone: boolean): EditOutcome {
    if (outcome === 'done' || outcome === 'accepted') return outcome
    if (outcome === 'failed') return 'refused'
    if (!conflict || kind === 'graft') return 'unknown'
    return isGone || this.#state.revsLimit < revsLimitMin ? 'refused' : 'conflict'
  }

  /** Returns by how many generations the document was, at most, ahead of the edited revision when the edit ended. */
  #revisionsSince({ database, id, parent, endMs }: Operation): number {
    if (parent === null) return 0
    const newest = this.#generations.get(`${database}/${id}`)!.filter(({ startMs }) => startMs <= endMs)
    return Math.max(0, ...newest.map(({ generation }) => generation)) - parseRevision(parent).generation
  }

  /** Returns the number of replicas of a range; 0 when the incarnation does not exist at the end. */
  #replicasOf(database: string, incarnation: string | undefined): number {
    const record = this.#state.databases.get(database)?.record
    return record === undefined || record.incarnation !== incarnation
      ? 0 : Math.max(...record.shards.map(({ replicas }) => replicas.length))
  }

  #reads(edits: readonly Edit[]): Read[] {
    const documents = Map.groupBy(new Set(edits.map(({ document }) => document)), document =>
      document.slice(0, document.indexOf('/')))
    return this.#state.operations.flatMap((operation): Read[] => {
      const { database, id, kind, outcome, readValue, revision = null, startMs, endMs, rows } = operation
      const incarnation = certainIncarnation(operation)
      if (kind === 'local-list' || outcome !== 'done' || incarnation === undefined) return []
      const label = describe(operation)
      const named = (row: ShownRow) => ({
        document: documentName(database, incarnation, row.id), revision: row.revision,
        ...(row.value !== undefined && { content: row.value }), ...(row.parent !== undefined && { parent: row.parent }),
      })
      if (kind === 'read') {
        return [{
          label, startMs, endMs, ...this.#freshness(operation, incarnation),
          ...named({ id, revision, ...(readValue !== undefined && { value: readValue }) }),
        }]
      }
      if (rows === undefined) return []
      if (kind === 'open-revisions' || kind === 'feed') {
        return rows.map(row => ({ label, startMs, endMs, ofLeaf: true, ...named(row) }))
      }
      const ofDatabase = documents.get(documentName(database, incarnation, '').slice(0, -1)) ?? []
      const prefix = id === '' || id.endsWith(':*') ? documentName(database, incarnation, id.slice(0, -1)) : undefined
      const complete = prefix === undefined ? [] : [...ofDatabase].filter(document => document.startsWith(prefix))
      const freshSinceMs = listFreshSince(operation)
      return listReads({ label, startMs, endMs, rows: rows.map(named), freshSinceMs }, complete)
    })
  }

  /** A read without faults sees the edits of which it must meet a replica: r + w > n. */
  #freshness({ calm, startMs, r, database }: Operation, incarnation: string): Partial<Read> {
    const n = this.#replicasOf(database, incarnation)
    return calm && n > 0 ? { freshSinceMs: startMs, copiesMin: n - Math.min(r ?? majority(n), n) + 1 } : {}
  }

  #locals(): Pick<RecordedHistory, 'localReads' | 'localWrites'> {
    const { operations, restMs = Infinity } = this.#state
    const localWrites: LocalWrite[] = []
    const localReads: LocalRead[] = []
    const written = new Map<string, Set<string>>()
    for (const { kind, database, id } of operations) {
      if (kind === 'local-write') written.set(database, (written.get(database) ?? new Set()).add(id))
    }
    for (const operation of operations) {
      const { kind, database, id, startMs, endMs, outcome, value, readValue = null, rows = [] } = operation
      const incarnation = certainIncarnation(operation)
      const label = describe(operation)
      const of = (each: string) => ({ label, document: documentName(database, each, `_local/${id}`), startMs, endMs })
      if (kind === 'local-write' || kind === 'local-delete') {
        const content = kind === 'local-write' ? value : null
        const known = localOutcome(operation)
        if (incarnation !== undefined) localWrites.push({ ...of(incarnation), content, outcome: known })
        else {
          localWrites.push(...[...this.#incarnations.get(database) ?? []].map((each): LocalWrite =>
            ({ ...of(each), content, outcome: known === 'refused' ? known : 'unknown' })))
        }
      } else if (kind === 'local-read' && outcome === 'done' && incarnation !== undefined) {
        localReads.push({ ...of(incarnation), content: readValue, fresh: startMs >= restMs })
      } else if (kind === 'local-list' && outcome === 'done' && incarnation !== undefined) {
        // A list shows every local document that it does not name as one that does not exist.
        const shown = new Map(rows.map(row => [row.id, row.value ?? null]))
        for (const each of new Set([...written.get(database) ?? [], ...shown.keys()])) {
          localReads.push({
            label, document: documentName(database, incarnation, `_local/${each}`), startMs, endMs,
            content: shown.get(each) ?? null, fresh: startMs >= restMs,
          })
        }
      }
    }
    return { localWrites, localReads }
  }

  /** Returns what requests tell of the names of databases that clients delete. */
  #names(): NameRequest[] {
    const { databases, operations, restMs } = this.#state
    const deletions = operations.filter(({ kind }) => kind === 'delete-database')
    const names = new Set(deletions.map(({ database }) => database))
    const ofNames = operations.filter(({ database }) => names.has(database))
    // A request may consist of several operations.
    const requests = new Map(ofNames.map(operation => [`${operation.client} ${operation.startMs}`, operation]))
    const told = [...requests.values()].flatMap((operation): NameRequest | [] => {
      const of = { name: operation.database, startMs: operation.startMs, label: describe(operation) }
      const certain = { ...of, certain: true, endMs: operation.endMs }
      if (changesName(operation)) {
        const does = operation.kind === 'create-database' ? 'create' : 'delete'
        return operation.outcome === 'done' ? { ...certain, does } : { ...of, endMs: Infinity, does, certain: false }
      }
      if (operation.databaseMissing) return mayHide(operation, deletions) ? [] : { ...certain, does: 'miss' }
      const isShown = operation.outcome === 'done' || (operation.kind === 'create-database' && operation.status === 412)
      // A node that is cut off may still show a database that was deleted.
      return isShown && operation.calm ? { ...certain, does: 'see' } : []
    })
    const finals = restMs === undefined ? [] : [...names].map((name): NameRequest => ({
      name, label: `the list of databases at rest, at ${restMs} ms,`, startMs: restMs, endMs: restMs, certain: true,
      does: databases.has(name) ? 'see' : 'miss',
    }))
    return [...told, ...finals]
  }

  #finals(): ReadonlyMap<string, FinalDocument> {
    const finals = new Map<string, FinalDocument>()
    for (const [database, { documents, record: { incarnation } }] of this.#state.databases) {
      if (!this.#incarnations.has(database)) continue
      for (const [id, { branches, leaves }] of documents) {
        finals.set(documentName(database, incarnation, id), { branches: branches.map(({ path, deleted }) => {
          const revisions = revisionsOf(path)
          const leaf = leaves.find(({ revision }) => revision === revisions[0])
          const content = leaf === undefined ? undefined : (JSON.parse(leaf.body) as { readonly v?: string }).v
          return { revisions, deleted, ...(content !== undefined && { content }) }
        }) })
      }
    }
    return finals
  }
}

/** Returns whether the operation created or deleted a database, or may have done it. */
function changesName({ kind, outcome, status }: Operation): boolean {
  if (kind === 'delete-database') return outcome !== 'failed'
  // A database that was created and deleted again at the same time is answered with 404.
  return kind === 'create-database' && (outcome !== 'failed' || status === 404)
}

/**
 * Returns whether the node may not show a database that exists: it has promised to delete it, or it does not know it,
 * and may be cut off from the leader, whom it would ask otherwise.
 */
function mayHide(
  { database, node, endMs, calm, incarnationBefore }: Operation, deletions: readonly Operation[],
): boolean {
  if (!calm && incarnationBefore === undefined) return true
  return deletions.some(deletion => deletion.database === database && deletion.node === node
    && deletion.startMs <= endMs && (deletion.outcome === 'accepted' || deletion.outcome === 'unknown'))
}

/**
 * Returns the outcome of a local write. Below a majority its position among other writes is not certain: a later writer
 * may not reach the replicas that have it, and then the clocks of the nodes decide which of the two wins.
 */
function localOutcome({ outcome, w, activeBefore }: Operation): LocalWrite['outcome'] {
  if (outcome === 'failed') return 'refused'
  return outcome === 'done' && w !== undefined && w < majority(activeBefore) ? 'accepted' : outcome
}

function documentName(database: string, incarnation: string, id: string): string {
  return `${database}.${incarnation}/${id}`
}

/** Returns the incarnation in which the operation was certainly carried out, or undefined. */
function certainIncarnation({ incarnationBefore, incarnationAfter }: Operation): string | undefined {
  return incarnationBefore === incarnationAfter ? incarnationBefore : undefined
}

function revisionsOf({ start, ids }: RevisionPath): string[] {
  return ids.map((hash, index) => `${start - index}-${hash}`)
}

/**
 * Returns the time before which acknowledged edits are in every list. A list asks one replica of each range, which must
 * have received what the others confirmed.
 */
function listFreshSince({ calmMs, startMs }: Operation): number {
  return calmMs >= caughtUpMs ? startMs - spreadMs : -Infinity
}
