/** Clients that edit and read few documents with few contents, so that their edits collide. */
import { setTimeout as pause } from 'node:timers/promises'
import type { EditOutcome } from '@sectional/simulator/history'
import type { Answer } from '../src/http-client.ts'
import type { TestCluster } from '../src/test-cluster.ts'
import { type Invocation, type Recorder, type SentEdit, withMissing } from './recorder.ts'
import type { SeededDraws } from './seeded-draws.ts'
import {
  contents, database, foundDocuments, isWorkload, localDocuments, viewPath, viewRows,
} from './torture-database.ts'

const documentsPerEpoch = 8
/** New documents begin after this time, so that histories of single documents stay short. */
const epochMs = 20_000
/** Revisions of each document that clients remember, so that some edits name old ones. */
const rememberedMax = 4
const requestMsMax = 5000
const problemsMax = 20
const thinkMs = { from: 5, to: 50 }

const weights = {
  put: 34, delete: 8, bulk: 12, get: 18, list: 5, changes: 3, leaves: 4, view: 6, find: 3, 'local-put': 7,
  'local-delete': 2, 'local-get': 7,
}

/** A row of the answer to `_bulk_docs`. */
interface Row {
  readonly id: string
  readonly rev?: string
  readonly error?: string
  readonly accepted?: boolean
}

export class Workload {
  readonly #cluster: TestCluster
  readonly #draws: SeededDraws
  readonly #recorder: Recorder
  readonly #startMs = performance.now()
  readonly #known = new Map<string, string[]>()
  /** Number of answers by status; 0: there was none. */
  readonly statuses = new Map<number, number>()
  /** Answers that no fault explains. */
  readonly problems: string[] = []

  constructor(cluster: TestCluster, draws: SeededDraws, recorder: Recorder) {
    this.#cluster = cluster
    this.#draws = draws
    this.#recorder = recorder
  }

  /** Sends requests one after the other until the time. */
  async client(untilMs: number): Promise<void> {
    while (performance.now() < untilMs) {
      await this.#request()
      await pause(this.#draws.integer(thinkMs.from, thinkMs.to))
    }
  }

  #request(): Promise<void> {
    const id = this.#document()
    switch (this.#draws.weighted(weights)) {
      case 'put': return this.#edit(this.#drawEdit(id, false))
      case 'delete': return this.#edit(this.#drawEdit(id, true))
      case 'bulk': return this.#bulk()
      case 'get': return this.#get(id)
      case 'list': return this.#list()
      case 'changes': return this.#changes()
      case 'leaves': return this.#leaves(id)
      case 'view': return this.#view()
      case 'find': return this.#find()
      case 'local-put': return this.#localWrite(this.#draws.pick(contents))
      case 'local-delete': return this.#localWrite(null)
      default: return this.#localGet()
    }
  }

  #document(): string {
    return `${this.#epoch}-${this.#draws.integer(1, documentsPerEpoch)}`
  }

  get #epoch(): string {
    return `e${Math.floor((performance.now() - this.#startMs) / epochMs)}`
  }

  /** Draws an edit. The first document of each epoch is never deleted, so that lists at rest always have rows. */
  #drawEdit(document: string, mayDelete: boolean): SentEdit {
    const deleted = mayDelete && !document.endsWith('-1')
    const known = this.#known.get(document) ?? []
    const [newest] = known
    const parent = newest === undefined || (!deleted && this.#draws.happens(0.08))
      ? null : this.#draws.happens(0.8) ? newest : this.#draws.pick(known)
    const w = this.#draws.happens(0.15) ? this.#draws.pick([1, 3]) : undefined
    const content = deleted ? '' : this.#draws.pick(contents)
    // A document is deleted by its revision; without one this is a write.
    return deleted && parent === null
      ? { document, parent, deleted: false, content: contents[0]! }
      : { document, parent, deleted, content, ...(w !== undefined && { w }) }
  }

  async #edit(sent: SentEdit): Promise<void> {
    const { document, parent, deleted, content, w } = sent
    const query = w === undefined ? '' : `w=${w}`
    const path = deleted ? `${document}?rev=${parent}&${query}` : `${document}?${query}`
    const json = deleted ? undefined : bodyOf(parent, content)
    const { invocation, answer } = await this.#send(deleted ? 'DELETE' : 'PUT', path, json)
    const outcome = outcomeOf(answer)
    const revision = outcome === 'done' || outcome === 'accepted' ? String(answer!.body.rev) : undefined
    this.#recorder.edited(invocation, sent, outcome, revision)
    if (revision !== undefined && !deleted) this.#learn(document, revision)
  }

  async #bulk(): Promise<void> {
    const ids = new Set(Array.from({ length: this.#draws.integer(2, 4) }, () => this.#document()))
    const edits = [...ids].map((id): SentEdit => ({ ...this.#drawEdit(id, this.#draws.happens(0.1)), w: undefined }))
    const docs = edits.map(({ document, parent, content, deleted }) =>
      ({ _id: document, ...(deleted ? { _rev: parent, _deleted: true } : bodyOf(parent, content)) }))
    const { invocation, answer } = await this.#send('POST', '_bulk_docs', { docs })
    const rows: readonly Row[] = Array.isArray(answer?.body) ? answer.body : []
    for (const sent of edits) {
      const row = rows.find(({ id }) => id === sent.document)
      const outcome = row === undefined ? rows.length > 0 ? 'unknown' : outcomeOf(answer, true) : outcomeOfRow(row)
      this.#recorder.edited(invocation, sent, outcome, row?.rev)
      if (row?.rev !== undefined && !sent.deleted) this.#learn(sent.document, row.rev)
    }
  }

  async #get(document: string): Promise<void> {
    const r = this.#draws.happens(0.2) ? this.#draws.pick([1, 3]) : undefined
    const { invocation, answer } = await this.#send('GET', `${document}?revs=true${r === undefined ? '' : `&r=${r}`}`)
    if (isMissing(answer)) return this.#recorder.read(invocation, { document, revision: null }, r)
    if (answer?.status !== 200) return
    const { _rev: revision, v: content, _revisions: { start, ids } } = answer.body
    const parent = ids.length > 1 ? { parent: `${start - 1}-${ids[1]}` } : {}
    this.#recorder.read(invocation, { document, revision, content, ...parent }, r)
    this.#learn(document, revision)
  }

  async #list(): Promise<void> {
    const epoch = this.#epoch
    const path = `_all_docs?include_docs=true&startkey="${epoch}-"&endkey="${epoch}-~"`
    const { invocation, answer } = await this.#send('GET', path)
    if (answer?.status !== 200) return
    this.#recorder.listed(invocation, answer.body.rows.map(
      ({ id, value, doc }: { id: string; value: { rev: string }; doc: { v: string } | null }) =>
        ({ document: id, revision: value.rev, ...(doc !== null && { content: doc.v }) })))
  }

  async #changes(): Promise<void> {
    const { invocation, answer } = await this.#send('GET', '_changes?style=all_docs&descending=true&limit=30')
    if (answer?.status !== 200) return
    this.#recorder.listed(invocation, answer.body.results.flatMap(
      ({ id, changes }: { id: string; changes: { rev: string }[] }) =>
        !isWorkload(id) ? [] : changes.map(({ rev }) => ({ document: id, revision: rev, ofLeaf: true }))))
  }

  async #leaves(document: string): Promise<void> {
    const { invocation, answer } = await this.#send('GET', `${document}?open_revs=all`)
    if (answer?.status !== 200) return
    const leaves: readonly { readonly ok?: { readonly _rev: string; readonly v?: string } }[] = answer.body
    this.#recorder.listed(invocation, leaves.flatMap(({ ok }) => ok === undefined ? [] : [{
      document, revision: ok._rev, ofLeaf: true, ...(ok.v !== undefined && { content: ok.v }),
    }]))
  }

  /** Reads the rows of the documents of this time. A row that is missing shows that its document is not there. */
  async #view(): Promise<void> {
    const epoch = this.#epoch
    const update = this.#draws.happens(0.8) ? 'true' : this.#draws.pick(['false', 'lazy'])
    const range = `startkey=["${epoch}"]&endkey=["${epoch}",{}]`
    const { invocation, answer } = await this.#send('GET', `${viewPath}?reduce=false&update=${update}&${range}`)
    const rows = answer && viewRows(answer)
    if (rows === undefined) return
    const expected = [...this.#recorder.documents].filter(id => id.startsWith(`${epoch}-`))
    this.#recorder.listed(invocation, withMissing(rows, expected), update === 'true' ? 1 : 0)
  }

  async #find(): Promise<void> {
    const epoch = this.#epoch
    const selector = { v: this.#draws.pick(contents), _id: { $gte: `${epoch}-`, $lt: `${epoch}-~` } }
    const { invocation, answer } = await this.#send('POST', '_find', { selector })
    const documents = answer && foundDocuments(answer)
    if (documents !== undefined) this.#recorder.listed(invocation, documents)
  }

  async #localWrite(content: string | null): Promise<void> {
    const document = `_local/${this.#draws.pick(localDocuments)}`
    const json = content === null ? undefined : { v: content }
    const { invocation, answer } = await this.#send(content === null ? 'DELETE' : 'PUT', document, json)
    const outcome = outcomeOf(answer)
    this.#recorder.localWritten(invocation, document, content, outcome === 'conflict' ? 'refused' : outcome)
  }

  async #localGet(): Promise<void> {
    const document = `_local/${this.#draws.pick(localDocuments)}`
    const { invocation, answer } = await this.#send('GET', document)
    if (answer?.status === 200) this.#recorder.localRead(invocation, document, answer.body.v)
    else if (isMissing(answer)) this.#recorder.localRead(invocation, document, null)
  }

  /** Remembers a revision as the newest one of its document. */
  #learn(document: string, revision: string): void {
    const others = (this.#known.get(document) ?? []).filter(known => known !== revision)
    this.#known.set(document, [revision, ...others].slice(0, rememberedMax))
  }

  async #send(
    method: string, path: string, json?: object,
  ): Promise<{ readonly invocation: Invocation; readonly answer: Answer | undefined }> {
    const node = this.#draws.pick(this.#cluster.nodes)
    const invocation = this.#recorder.begin(`${method} ${path.split('?')[0]} by node${node.number}`)
    const answer = await node.http.send(method, `/${database}/${path}`, { json, timeoutMs: requestMsMax })
      .catch(() => undefined)
    const status = answer?.status ?? 0
    // `_bulk_docs` also has this status when the outcome of one edit is not known. Other requests have it when no
    // replica has answered in time, as when a node whose disk was full is cut off from the others.
    const isOutage = path === '_bulk_docs' || answer?.body?.error === 'timeout'
    if (status === 500 && !isOutage && this.problems.length < problemsMax) {
      this.problems.push(`${method} ${path} by node${node.number} was answered 500 ${JSON.stringify(answer!.body)}`)
    }
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    return { invocation, answer }
  }
}

function bodyOf(parent: string | null, content: string): object {
  return { ...(parent !== null && { _rev: parent }), v: content }
}

/**
 * Returns what an answer says about the edit.
 *
 * @param ofRequest whether the answer is to a request for several edits, where 201 does not say which were made
 */
function outcomeOf(answer: Answer | undefined, ofRequest = false): EditOutcome {
  const status = answer?.status ?? 0
  if (ofRequest && status < 300) return 'unknown'
  if (status === 200 || status === 201) return 'done'
  if (status === 202) return 'accepted'
  if (status === 409) return 'conflict'
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'unknown'
}

function outcomeOfRow({ rev, error, accepted }: Row): EditOutcome {
  if (rev !== undefined) return accepted ? 'accepted' : 'done'
  return error === 'conflict' ? 'conflict' : error === 'forbidden' ? 'refused' : 'unknown'
}

/** Returns whether the answer says that the document does not exist or is deleted, and not the database. */
function isMissing(answer: Answer | undefined): boolean {
  return answer?.status === 404 && (answer.body.reason === 'missing' || answer.body.reason === 'deleted')
}
