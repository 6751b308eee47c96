/** Formats a changes feed as text for each kind of feed (docs/reference/changes.md#get-post-db_changes). */
import type { Leaf, SplicedDocument } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import type { DocumentWriter } from '../lists/list-writer.ts'
import type { JsonWriter } from '../messages/json-writer.ts'
import type { FeedKind } from './changes-parameters.ts'

/** The format of a feed's rows, and whether the feed ends with the number of pending changes. */
export interface FeedShape {
  /** Returns the JSON of a row without its closing brace. */
  readonly row: (change: ShownChange) => string
  readonly pending: boolean
}

export interface ShownChange {
  /** The since-token; null when `seq_interval` leaves it out. */
  readonly sequence: string | null
  readonly id: string
  readonly leaves: readonly Leaf[]
  readonly deleted: boolean
  /**
   * The included document. undefined: it was not requested; null: its body is not available; a function writes a
   * document that does not fit into memory.
   */
  readonly doc: SplicedDocument | Uint8Array | DocumentWriter | null | undefined
}

export const changesShape: FeedShape = {
  row: ({ sequence, id, leaves, deleted }) => {
    const revisions = leaves.length === 1 ? changeOf(leaves[0]!) : leaves.map(changeOf).join(',')
    const end = deleted ? ',"deleted":true' : ''
    return `{"seq":${sequenceText(sequence)},"id":${JSON.stringify(id)},"changes":[${revisions}]${end}`
  },
  pending: true,
}

function changeOf({ revision }: Leaf): string {
  return `{"rev":${JSON.stringify(revision)}}`
}

/** Since-tokens contain no character that JSON would escape. */
function sequenceText(sequence: string | null): string {
  return sequence === null ? 'null' : `"${sequence}"`
}

/** Milliseconds by which a heartbeat may be early, so that the heartbeats of many feeds share timers. */
const earlyMs = 25

export class ChangesWriter {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #writer: JsonWriter
  readonly #kind: FeedKind
  readonly #shape: FeedShape
  #rows = 0
  #sent = false
  /** Number of writes that the client has not taken yet. It is above 0 while the client is slow. */
  #flushing = 0
  #activeAt: number

  constructor(writer: JsonWriter, kind: FeedKind, clock: Pick<Clock, 'monotonic'>, shape: FeedShape = changesShape) {
    this.#shape = shape
    this.#writer = writer
    this.#kind = kind
    this.#clock = clock
    this.#activeAt = clock.monotonic()
    if (this.#isList) writer.text('{"results":[\n')
  }

  get rows(): number { return this.#rows }
  /**
   * Monotonic time in milliseconds at which bytes were last sent or taken by the client, or at which a heartbeat was
   * skipped because the client takes no bytes.
   */
  get activeAt(): number { return this.#activeAt }

  /** Writes a row. Await the result before you write the next row. */
  row(change: ShownChange): Promise<void> | undefined {
    const writer = this.#writer
    const { doc, sequence } = change
    const before = this.#kind === 'eventsource' ? 'data: ' : this.#isList && this.#rows > 0 ? ',\r\n' : ''
    const after = this.#kind === 'eventsource' ? `}\nid: ${sequenceText(sequence)}\n\n`
      : this.#kind === 'continuous' ? '}\n'
      : '}'
    writer.text(before)
    writer.text(this.#shape.row(change))
    if (doc !== undefined) writer.text(',"doc":')
    if (typeof doc === 'function') return this.#counted(this.#writeDocument(doc, after))
    if (doc === null) writer.text('null')
    else if (doc instanceof Uint8Array) writer.bytes(doc)
    else if (doc !== undefined) writer.document(doc)
    return this.#counted(this.#endRow(after))
  }

  async #writeDocument(write: DocumentWriter, after: string): Promise<void> {
    await write(this.#writer)
    await this.#endRow(after)
  }

  #endRow(after: string): Promise<void> | undefined {
    this.#writer.text(after)
    this.#rows++
    return this.#timed(this.#writer.flushFull())
  }

  /**
   * Call this when there is no further row for now. It sends the buffered rows, or an empty line when nothing was sent,
   * so that the client receives the headers.
   */
  async waiting(): Promise<void> {
    if (this.#rows === 0 && !this.#sent) this.#writer.text('\n')
    await this.#send()
  }

  /** Sends the rows of a continuous feed that are buffered when nothing was sent for `delayMs` milliseconds. */
  async flushLate(delayMs: number): Promise<void> {
    if (this.#isList || this.#rows === 0 || this.#clock.monotonic() - this.#activeAt < delayMs) return
    await this.#send()
  }

  /** Sends a heartbeat when nothing was sent for about `intervalMs` milliseconds, to keep the connection open. */
  async heartbeat(intervalMs: number): Promise<void> {
    const now = this.#clock.monotonic()
    if (this.#flushing > 0) this.#activeAt = now
    else if (now - this.#activeAt >= intervalMs - earlyMs) await this.#beat()
  }

  async #beat(): Promise<void> {
    this.#writer.text(this.#kind === 'eventsource' ? 'event: heartbeat\ndata: \n\n' : '\n')
    await this.#send()
  }

  end(lastSequence: string, pending: number): Promise<void> {
    const last = `"last_seq":${JSON.stringify(lastSequence)}${this.#shape.pending ? `,"pending":${pending}` : ''}}\n`
    if (this.#isList) this.#writer.text(`\n],\n${last}`)
    else if (this.#kind === 'continuous') this.#writer.text(`{${last}`)
    this.#writer.text('\n')
    return this.#writer.end()
  }

  get #isList(): boolean { return this.#kind === 'normal' || this.#kind === 'longpoll' }

  async #send(): Promise<void> {
    this.#sent = true
    await this.#counted(this.#timed(this.#writer.flush()))
  }

  #timed(sending: Promise<void> | undefined): Promise<void> | undefined {
    if (sending === undefined) return undefined
    this.#activeAt = this.#clock.monotonic()
    return sending.finally(() => { this.#activeAt = this.#clock.monotonic() })
  }

  #counted(sending: Promise<void> | undefined): Promise<void> | undefined {
    if (sending === undefined) return undefined
    this.#flushing++
    return sending.finally(() => { this.#flushing-- })
  }
}
