/** Runs one changes feed from its first row to its last line. */
import { projectFields, parseExactly, readValue, smallJsonBytes, type ChangeRow, type FieldPath } from '@sectional/core'
import type { ChangesEvent, ChangesFeed } from '@sectional/cluster'
import { ClientGoneError, type Timer } from '@sectional/runtime'
import { writeAttachmentData } from '../attachments/attachment-view.ts'
import { noFlags, showRevision, splicedRevision, writeRevision, type ReadFlags } from '../documents/document-reading.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { ChangesFilter } from './changes-filter.ts'
import type { ChangesParameters } from './changes-parameters.ts'
import type { ChangesWriter, ShownChange } from './changes-writer.ts'
import type { OpenFeed } from '../services/feeds.ts'

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

  end(): void { this.#feed.end() }

  async run(): Promise<void> {
    const { feeds } = this.#services
    if (this.#follows) {
      feeds.add(this)
      this.#beat()
    }
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
    let timeout: Timer | undefined
    try {
      for (let event = await this.#next(); event !== null; event = await this.#next()) {
        timeout?.cancel()
        if (event.kind === 'rows') {
          if (await this.#take(event)) return
          continue
        }
        if (this.#parameters.feed === 'longpoll' && this.#writer.rows > 0) return
        await this.#writer.waiting()
        if (this.#services.options.maintenanceMode !== 'false') return
        if (this.#parameters.heartbeatMs !== null) continue
        if (this.#parameters.timeoutMs === 0) return
        timeout = this.#services.feeds.after(this.#parameters.timeoutMs, () => this.#feed.end())
      }
    } finally {
      timeout?.cancel()
    }
  }

  /** Returns the next event. When the database was deleted, the feed ends and errors of its replicas are ignored. */
  async #next(): Promise<ChangesEvent | null> {
    try {
      return await this.#feed.next()
    } catch (error) {
      if (this.#services.feeds.isGone(this.database)) return null
      throw error
    }
  }

  /** Writes the rows of an event. Returns true when the limit is reached. */
  async #take(event: ChangesEvent & { readonly kind: 'rows' }): Promise<boolean> {
    const { allLeaves, sequenceInterval } = this.#parameters
    for (const row of event.rows) {
      this.#feed.take(event, row)
      const shown = allLeaves || row.leaves.length === 1 ? row.leaves : row.leaves.slice(0, 1)
      const passed = this.#filter === null ? shown : this.#filter.pass(row, shown)
      const leaves = passed instanceof Promise ? await passed : passed
      if (leaves.length === 0) continue
      const sequence = sequenceInterval === null || this.#left % sequenceInterval === 0 ? this.#feed.token() : null
      const full = this.#writer.row({
        sequence, id: row.id, leaves, deleted: row.leaves[0]!.deleted, doc: this.#document(row),
      })
      if (full !== undefined) await full
      if (--this.#left === 0) return true
    }
    return false
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
        const { value } = await this.#services.runtime.turns.run(readValue(json, 0, true))
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
    const { heartbeatMs } = this.#parameters
    if (heartbeatMs === null) return
    this.#heartbeat = this.#services.feeds.within(heartbeatMs, this.#writer.activeAt, () => {
      // Ignore the error and end the feed: the loop that reads the feed reports that the client is gone.
      this.#writer.heartbeat(heartbeatMs).catch(() => this.#feed.end())
      this.#beat()
    })
  }
}
