/** Runs one changes feed from its first row to its last line. */
import {
  projectFields, parseExactly, readValue, smallJsonBytes, type ChangeRow, type FieldPath, type Leaf,
} from '@sectional/core'
import type { ChangesEvent, ChangesFeed } from '@sectional/cluster'
import { ClientGoneError, type Timer } from '@sectional/runtime'
import { writeAttachmentData } from '../attachments/attachment-view.ts'
import { noFlags, showRevision, splicedRevision, writeRevision, type ReadFlags } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { shownLeaves, type ChangesFilter } from './changes-filter.ts'
import type { ChangesParameters } from './changes-parameters.ts'
import type { ChangesWriter, ShownChange } from './changes-writer.ts'
import type { OpenFeed } from '../services/open-feed.ts'

type RowsEvent = ChangesEvent & { readonly kind: 'rows' }

/** Milliseconds for which a row may wait for further rows, while a slow filter looks for them. */
const rowDelayMs = 1000
/** The limit from which CouchDB counts `seq_interval` when the request has none. */
const unlimitedRows = 1e15

export class ChangesRun implements OpenFeed {
  readonly #feed: ChangesFeed
  readonly #parameters: ChangesParameters
  readonly #filter: ChangesFilter | null
  readonly #writer: ChangesWriter
  readonly #request: RequestContext
  readonly #services: Services
  /** The flags for included documents. */
  readonly #flags: ReadFlags
  #left: number
  #heartbeat: Timer | undefined
  /** True when the feed was told to end before its last row. */
  #ending = false
  /** Ends a feed without heartbeats that has had no row for too long. */
  #timeout: Timer | undefined
  /** True when the timeout that the client asked for has begun, which is when the feed first waited after a row. */
  #isWaiting = false

  constructor(
    feed: ChangesFeed, parameters: ChangesParameters, filter: ChangesFilter | null, writer: ChangesWriter,
    request: RequestContext, services: Services,
  ) {
    this.#feed = feed
    this.#parameters = parameters
    this.#filter = filter
    this.#writer = writer
    this.#request = request
    this.#services = services
    const { conflicts, encodingInfo } = parameters
    this.#flags = conflicts || encodingInfo ? { ...noFlags, conflicts, encodingInfo } : noFlags
    this.#left = parameters.limit ?? unlimitedRows
  }

  get database() { return this.#request.database }

  get user() { return this.#request.user }

  get authorization() { return this.#request.sent.headers.authorization }

  end(): void {
    this.#ending = true
    this.#feed.end()
  }

  async run(): Promise<void> {
    const { feeds } = this.#services
    if (this.#follows) feeds.add(this)
    // A normal feed is silent only while its filter leaves out rows.
    if (this.#follows || this.#filter !== null) this.#beat()
    try {
      if (this.#left > 0) await this.#read()
      if (this.#request.signal.aborted) throw new ClientGoneError()
      const pending = feeds.isGone(this.database) ? 0 : await this.#feed.pending()
      await this.#writer.end(this.#feed.token(), pending)
    } finally {
      this.#heartbeat?.cancel()
      feeds.delete(this)
    }
  }

  get #follows(): boolean { return this.#parameters.feed !== 'normal' }

  async #read(): Promise<void> {
    try {
      this.#limitSilence(false)
      for (let event = await this.#next(); event !== null; event = await this.#next()) {
        if (event.kind === 'rows') {
          if (await this.#take(event)) return
          continue
        }
        if (this.#parameters.feed === 'longpoll' && this.#writer.rows > 0) return
        await this.#writer.waiting()
        if (this.#services.options.maintenanceMode !== 'false') return
        if (this.#parameters.heartbeatMs !== null) continue
        if (this.#parameters.timeoutMs === 0) return
        if (!this.#isWaiting) this.#limitSilence(true)
      }
    } finally {
      this.#timeout?.cancel()
    }
  }

  /**
   * Limits the time until the next row. A feed that waits for changes has the timeout that the client asked for. While
   * a filter still leaves out rows of the past, that may be too short for any result, so the longest timeout applies.
   */
  #limitSilence(isWaiting: boolean): void {
    const { heartbeatMs, timeoutMs } = this.#parameters
    if (!this.#follows || heartbeatMs !== null) return
    this.#timeout?.cancel()
    this.#timeout = undefined
    this.#isWaiting = isWaiting
    if (!isWaiting && this.#filter === null) return
    const { feeds, options } = this.#services
    this.#timeout = feeds.after(isWaiting ? timeoutMs : options.changesTimeoutMs, () => this.end())
  }

  /** Returns the next event. When the database was deleted, the feed ends and errors of its replicas are ignored. */
  #next(): Promise<ChangesEvent | null> {
    return this.#unlessGone(() => this.#feed.next())
  }

  async #unlessGone<T>(read: () => T | Promise<T>): Promise<T | null> {
    try {
      return await read()
    } catch (error) {
      if (this.#services.feeds.isGone(this.database)) return null
      throw error
    }
  }

  /** Writes the rows of an event. Returns true when the feed must end. */
  async #take(event: RowsEvent): Promise<boolean> {
    const filter = this.#filter
    if (filter !== null) return this.#filtered(event, filter)
    this.#limitSilence(false)
    for (const row of event.rows) {
      const full = this.#takeRow(event, row, shownLeaves(row, this.#parameters.allLeaves))
      if (full !== undefined) await full
      if (this.#left === 0) return true
    }
    return false
  }

  async #filtered(event: RowsEvent, filter: ChangesFilter): Promise<boolean> {
    const { rows } = event
    for (let at = 0; at < rows.length;) {
      const passed = await this.#unlessGone(() => filter.pass(rows, at))
      if (passed === null) return true
      const written = this.#writer.rows
      for (const leaves of passed) {
        const full = this.#takeRow(event, rows[at++]!, leaves)
        if (full !== undefined) await full
        if (this.#left === 0) return true
      }
      if (this.#writer.rows > written) this.#limitSilence(false)
      await this.#writer.flushLate(rowDelayMs)
      if (this.#ending) return true
    }
    return false
  }

  /** Writes a row unless no leaf of it passed. Await the result before the next row. */
  #takeRow(event: RowsEvent, row: ChangeRow, leaves: readonly Leaf[]): Promise<void> | undefined {
    this.#feed.take(event, row)
    if (leaves.length === 0) return undefined
    const { sequenceInterval } = this.#parameters
    const sequence = sequenceInterval === null || this.#left % sequenceInterval === 0 ? this.#feed.token() : null
    this.#left--
    return this.#writer.row({
      sequence, id: row.id, leaves, deleted: row.leaves[0]!.deleted, doc: this.#document(row),
    })
  }

  #document({ id, leaves, body, attachments }: ChangeRow): ShownChange['doc'] {
    const { includeDocs, attachments: withContent, encodingInfo } = this.#parameters
    if (!includeDocs) return undefined
    if (body === undefined) return null
    const flags = this.#flags
    const { revision, deleted } = leaves[0]!
    const shown = attachments === undefined
      ? { id, revision, deleted, body, leaves }
      : { id, revision, deleted, body, leaves, attachments }
    const fields = this.#filter?.fields
    if (withContent && attachments !== undefined && !fields) {
      return writer => writeRevision(writer, shown, { ...flags, attachments: true }, this.#request, this.#services)
    }
    if (!fields) return splicedRevision(shown, flags)
    const { json } = showRevision(shown, flags)
    const project = (paths: readonly FieldPath[]): string =>
      JSON.stringify(projectFields(parseExactly(json.toString('utf8')), paths))
    if (json.length > smallJsonBytes && !withContent) {
      return async writer => {
        const { value } = await this.#services.runtime.turns.run(readValue(json, 0, 'exact'))
        writer.text(JSON.stringify(projectFields(value, fields)))
      }
    }
    const others = fields.filter(path => path.length > 1 || path[0] !== '_attachments')
    if (!withContent || attachments === undefined || others.length === fields.length) {
      return Buffer.from(project(fields))
    }
    return async writer => {
      const rest = project(others)
      writer.text(rest === '{}' ? '{' : `${rest.slice(0, -1)},`)
      await writeAttachmentData(
        writer, id, attachments, new Set(attachments), encodingInfo, this.#request, this.#services,
      )
      writer.text('}')
    }
  }

  #beat(): void {
    if (this.#parameters.heartbeatMs === null) return
    const { feeds } = this.#services
    const intervalMs = feeds.heartbeatMs(this.#parameters.heartbeatMs)
    this.#heartbeat = feeds.within(intervalMs, this.#writer.activeAt, () => {
      // Ignore the error and end the feed: the loop that reads the feed reports that the client is gone.
      this.#writer.heartbeat(intervalMs).catch(() => this.#feed.end())
      this.#beat()
    })
  }
}
