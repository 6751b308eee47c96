/**
 * Records creations, writes and deletions of databases as documents of a database of its own, whose changes feed is
 * `_db_updates`. Every node sees the changes of the metadata and the commits of its own replicas. A creation or
 * deletion is recorded once, by any node. A write is recorded by one of the nodes that hold the shard
 * (event-recorder.ts); the others record it if the link to that node breaks within some seconds. An event is therefore
 * lost only if all nodes that saw it are lost, and is recorded more than once only when nodes or links fail.
 *
 * Nothing is recorded until a client requests the feed for the first time (`open`). Then events for the databases that
 * exist are recorded.
 */
import { ApiError } from '@sectional/core'
import type { HashRange, ShardId } from '@sectional/core'
import type { Runtime, Timer } from '@sectional/runtime'
import type { LocalReplicas } from '../replicas/local-replicas.ts'
import type { ClusterState, DatabaseRecord } from '../control/cluster-state.ts'
import type { ControlPlane } from '../control/control-plane.ts'
import { DatabaseMap } from '../control/database-map.ts'
import type { Coordinator, OperationContext } from '../contracts/coordinator.ts'
import { defaultDatabaseEventsOptions } from './database-events-options.ts'
import type { DatabaseEventsOptions } from './database-events-options.ts'
import { eventId, eventsDatabase, eventWrite, incarnationOf, parseEventId } from './event-document.ts'
import type { EventKind } from './event-document.ts'
import { eventRecorder } from './event-recorder.ts'

export interface DatabaseEventsParts {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly control: Pick<ControlPlane,
    'node' | 'connectedNodes' | 'state' | 'onChange' | 'createDatabase' | 'confirmAbsent'>
  readonly local: Pick<LocalReplicas, 'shards' | 'replica' | 'onCommit'>
  readonly coordinator: Pick<Coordinator, 'openDocuments' | 'updateDocuments' | 'listDocuments'>
  /** Returns the option `global_changes/update_db`. */
  readonly enabled: () => boolean
  /** Returns the number of replicas of the events' database. */
  readonly replicas: () => number
  readonly options?: Partial<DatabaseEventsOptions>
}

type Databases = ClusterState['databases']

interface EntrustedWrite { readonly incarnation: string; readonly ranges: Set<HashRange>; readonly untilMs: number }

/** The running recording and its state. */
interface Recording {
  /** The events' database. Its replicas may move while it is recorded. */
  log: DatabaseRecord
  /** Resolves after the first attempt to record the databases that existed when the recording began. */
  begun: Promise<void>
  databases: Databases
  readonly names: Map<string, string>
  /** The events to be written, oldest first: event id -> incarnation. At most three per database. */
  readonly pending: Map<string, string>
  /** Event id -> ranges that were written to. */
  readonly written: Map<string, Set<HashRange>>
  /** Writes that another node must record, by event id. */
  readonly entrusted: Map<string, EntrustedWrite>
  /** True while some of what existed at the beginning could not be read yet. */
  incomplete: boolean
}

export class DatabaseEvents {
  readonly #parts: DatabaseEventsParts
  readonly #options: DatabaseEventsOptions
  readonly #abort = new AbortController()
  readonly #unsubscribe: (() => void)[] = []
  #recording: Recording | undefined
  #timer: Timer | undefined
  /** Timer of the checks of entrusted writes. */
  #watch: Timer | undefined
  #flushedAt = -Infinity
  #flushing: Promise<void> | undefined

  constructor(parts: DatabaseEventsParts) {
    this.#parts = parts
    this.#options = { ...defaultDatabaseEventsOptions, ...parts.options }
  }

  start(): void {
    const { control, local } = this.#parts
    this.#unsubscribe.push(
      control.onChange(state => { this.#look(state) }),
      local.onCommit((shard, documents) => { if (documents) this.#committed(shard) }),
    )
    this.#look(control.state())
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe()
    this.#abort.abort()
    this.#timer?.cancel()
    this.#watch?.cancel()
    await this.#recording?.begun
    await this.#flushing
  }

  /**
   * Returns the database whose changes are the events. The first call creates it.
   * @throws ApiError `database_missing` when the recording is disabled, `service_unavailable` while the database cannot
   *   be created
   */
  async open(): Promise<DatabaseRecord> {
    const { control, enabled, replicas } = this.#parts
    const found = control.state()?.databases.get(eventsDatabase) ?? await control.confirmAbsent(eventsDatabase)
    if (found === undefined) {
      if (!enabled()) throw new ApiError('database_missing')
      await this.#create(replicas())
    }
    this.#look(control.state())
    const recording = this.#recording
    if (recording === undefined) {
      if (found !== undefined) return found
      throw new ApiError('database_missing')
    }
    await recording.begun
    return recording.log
  }

  /** Creates the database with one shard: there are few events, and one shard gives them one order. */
  async #create(n: number): Promise<void> {
    try {
      await this.#parts.control.createDatabase(eventsDatabase, { q: 1, n, partitioned: false })
    } catch (error) {
      if (!(error instanceof ApiError) || error.error !== 'file_exists') throw error
    }
  }

  #look(state: ClusterState | null): void {
    if (state === null || this.#abort.signal.aborted) return
    const log = state.databases.get(eventsDatabase)
    if (log === undefined || !this.#parts.enabled()) {
      this.#recording = undefined
      this.#timer?.cancel()
      this.#timer = undefined
      return
    }
    const recording = this.#recording
    if (recording?.log.incarnation !== log.incarnation) return this.#begin(log, state.databases)
    recording.log = log
    if (recording.databases !== state.databases) this.#compare(recording, state.databases)
  }

  #begin(log: DatabaseRecord, databases: Databases): void {
    const recording: Recording = {
      log, databases, names: new Map(), pending: new Map(), written: new Map(), entrusted: new Map(),
      incomplete: false, begun: Promise.resolve(),
    }
    for (const { name, incarnation } of databases.values()) recording.names.set(incarnation, name)
    this.#recording = recording
    recording.begun = this.#recordStanding(recording)
  }

  #compare(recording: Recording, databases: Databases): void {
    const before = recording.databases
    recording.databases = databases
    for (const { before: gone, after: made } of DatabaseMap.changed(before, databases)) {
      if (gone?.incarnation === made?.incarnation) continue
      // A database of the same name is created after the deletion, so its event is recorded after that one.
      if (gone !== undefined) {
        recording.names.delete(gone.incarnation)
        this.#add(recording, 'deleted', gone.name, gone.incarnation)
      }
      if (made === undefined) continue
      recording.names.set(made.incarnation, made.name)
      this.#add(recording, 'created', made.name, made.incarnation)
    }
  }

  #committed({ incarnation, range }: ShardId): void {
    const recording = this.#recording
    const name = recording?.names.get(incarnation)
    if (recording === undefined || name === undefined || name === eventsDatabase) return
    const id = eventId({ kind: 'updated', name })
    const ranges = recording.written.get(id)
    if (ranges === undefined) recording.written.set(id, new Set([range]))
    else ranges.add(range)
    this.#add(recording, 'updated', name, incarnation)
  }

  /** Leaves writes to the nodes that must record them. */
  #entrust(recording: Recording): void {
    if (recording.written.size === 0) return
    const linked = new Set(this.#parts.control.connectedNodes())
    const untilMs = this.#parts.runtime.clock.monotonic() + this.#options.trustMs
    for (const [id, ranges] of recording.written) {
      const incarnation = recording.pending.get(id)
      if (incarnation === undefined || this.#records(recording, id, ranges, linked)) continue
      recording.pending.delete(id)
      const before = recording.entrusted.get(id)?.ranges ?? []
      recording.entrusted.set(id, { incarnation, ranges: new Set([...before, ...ranges]), untilMs })
    }
    recording.written.clear()
    this.#watchEntrusted(recording)
  }

  /** Returns true when this node must record a write to one of the ranges. */
  #records(recording: Recording, id: string, ranges: Iterable<HashRange>, linked: ReadonlySet<string>): boolean {
    const { node } = this.#parts.control
    const database = recording.databases.get(nameOf(id))
    return database !== undefined
      && [...ranges].some(range => (eventRecorder(database, range, linked) ?? node) === node)
  }

  /**
   * Checks whether links to the nodes that must record writes are still open. After a link broke, the next node records
   * the write.
   */
  #watchEntrusted(recording: Recording): void {
    if (this.#watch !== undefined || recording.entrusted.size === 0 || this.#abort.signal.aborted) return
    this.#watch = this.#parts.runtime.clock.setTimer(this.#options.watchMs, () => {
      this.#watch = undefined
      const current = this.#recording
      // A recording that began meanwhile has found the timer of this one and armed none.
      if (current !== recording) return current === undefined ? undefined : this.#watchEntrusted(current)
      const linked = new Set(this.#parts.control.connectedNodes())
      const now = this.#parts.runtime.clock.monotonic()
      for (const [id, { incarnation, ranges, untilMs }] of recording.entrusted) {
        const isOurs = this.#records(recording, id, ranges, linked)
        if (isOurs) recording.pending.set(id, incarnation)
        if (isOurs || now >= untilMs) recording.entrusted.delete(id)
      }
      if (recording.pending.size > 0) this.#schedule()
      this.#watchEntrusted(recording)
    })
  }

  #add(recording: Recording, kind: EventKind, name: string, incarnation: string): void {
    if (name === eventsDatabase) return
    const id = eventId({ kind, name })
    // The event moves to the end: it is the newest one.
    recording.pending.delete(id)
    recording.pending.set(id, incarnation)
    this.#schedule()
  }

  #schedule(minMs = this.#options.delayMs): void {
    if (this.#timer !== undefined || this.#flushing !== undefined || this.#abort.signal.aborted) return
    const { clock } = this.#parts.runtime
    const restMs = this.#flushedAt + this.#options.intervalMs - clock.monotonic()
    this.#timer = clock.setTimer(Math.max(minMs, restMs), () => this.#startFlush())
  }

  #startFlush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#flushing = this.#flush().then(succeeded => {
      this.#flushing = undefined
      this.#flushedAt = this.#parts.runtime.clock.monotonic()
      const { delayMs, retryMs } = this.#options
      const left = this.#recording
      if (left !== undefined && (left.pending.size > 0 || left.incomplete)) {
        this.#schedule(succeeded ? delayMs : retryMs)
      }
    })
  }

  /** Writes the pending events. Never rejects; events that could not be written stay pending. */
  async #flush(): Promise<boolean> {
    const recording = this.#recording
    if (recording === undefined) return true
    const { pending } = recording
    const unwritten = new Map<string, string>()
    const held = new Set<string>()
    try {
      if (recording.incomplete) await this.#readStanding(recording)
      this.#entrust(recording)
      for (const batch of batches([...pending], this.#options.batchMax)) {
        // The events of a database stay in their order: one waits when an earlier one was not written, or when a newer
        // event of its kind has replaced it.
        const events = batch.filter(([id, incarnation]) => !held.has(nameOf(id)) && pending.get(id) === incarnation)
        if (events.length === 0) continue
        for (const [id, incarnation] of events) {
          pending.delete(id)
          unwritten.set(id, incarnation)
        }
        await this.#write(recording.log, events, unwritten)
        for (const [id] of events) if (unwritten.has(id)) held.add(nameOf(id))
      }
      return true
    } catch (error) {
      this.#parts.runtime.log.debug({ error: String(error) }, 'database events could not be recorded; trying again')
      return false
    } finally {
      putInFront(pending, unwritten)
    }
  }

  /**
   * Writes a batch of events, and removes those from `unwritten` that are recorded then. An event that another node
   * recorded at the same time is checked again, because a reader sees it only if its row comes after the event.
   */
  async #write(
    log: DatabaseRecord, events: readonly PendingEvent[], unwritten: Map<string, string>,
  ): Promise<void> {
    const { coordinator } = this.#parts
    const recorded = await coordinator.openDocuments(log, events.map(([id]) => id), { body: true }, this.#context())
    const writes = events.flatMap(([id, incarnation], index) =>
      eventWrite(parseEventId(id)!, incarnation, recorded[index] ?? null) ?? [])
    const outcomes = writes.length === 0 ? [] : await coordinator.updateDocuments(log, writes, {}, this.#context())
    const failed = new Set(writes.filter((_, index) => outcomes[index]!.kind !== 'written').map(({ id }) => id))
    for (const [id] of events) if (!failed.has(id)) unwritten.delete(id)
  }

  async #recordStanding(recording: Recording): Promise<void> {
    recording.incomplete = true
    await this.#flushing
    if (this.#recording !== recording || this.#abort.signal.aborted) return
    this.#startFlush()
    await this.#flushing
  }

  /**
   * Adds the events that this node may have missed or that came before the recording: deletions, creations, and
   * databases with documents on this node.
   */
  async #readStanding(recording: Recording): Promise<void> {
    const { coordinator, local } = this.#parts
    const { log, names } = recording
    const everyEvent = { descending: false, skip: 0, limit: null, body: true, leaves: false }
    const list = await coordinator.listDocuments(log, everyEvent, this.#context())
    const recorded = new Map<string, string | undefined>()
    for await (const page of list.rows) for (const { id, body } of page) recorded.set(id, incarnationOf(body))
    const standing = new Map<string, string>()
    for (const [id, incarnation] of recorded) {
      const event = parseEventId(id)
      if (event?.kind !== 'created' || incarnation === undefined) continue
      if (recording.databases.get(event.name)?.incarnation === incarnation) continue
      const deletion = eventId({ kind: 'deleted', name: event.name })
      if (recorded.get(deletion) !== incarnation) standing.set(deletion, incarnation)
    }
    for (const { name, incarnation } of recording.databases.values()) {
      const id = eventId({ kind: 'created', name })
      if (name !== eventsDatabase && recorded.get(id) !== incarnation) standing.set(id, incarnation)
    }
    for (const shard of local.shards()) {
      const name = names.get(shard.incarnation)
      if (name === undefined || name === eventsDatabase) continue
      const update = eventId({ kind: 'updated', name })
      if (standing.has(update) || recording.pending.has(update)) continue
      const call = { timeoutMs: this.#options.readTimeoutMs, signal: this.#abort.signal }
      const info = await local.replica(shard)?.upkeep.replicaInfo(call)
      if (info !== undefined && info.documentCount + info.deletedCount > 0) standing.set(update, shard.incarnation)
    }
    putInFront(recording.pending, standing)
    recording.incomplete = false
  }

  #context(): OperationContext {
    return { requestId: 'database-events', signal: this.#abort.signal }
  }
}

type PendingEvent = readonly [id: string, incarnation: string]

/** Adds events that are older than the pending ones, except those of which a newer event of the same id is pending. */
function putInFront(pending: Map<string, string>, older: ReadonlyMap<string, string>): void {
  if (older.size === 0) return
  const newer = new Map(pending)
  pending.clear()
  for (const [id, incarnation] of older) if (!newer.has(id)) pending.set(id, incarnation)
  for (const [id, incarnation] of newer) pending.set(id, incarnation)
}

function nameOf(id: string): string {
  return parseEventId(id)!.name
}

/** Splits events into batches with one event of each database, because the rows of one write have no order. */
function batches(events: readonly PendingEvent[], batchMax: number): readonly (readonly PendingEvent[])[] {
  const found: PendingEvent[][] = []
  let names = new Set<string>()
  for (const event of events) {
    const name = nameOf(event[0])
    if (found.length === 0 || names.has(name) || names.size >= batchMax) {
      found.push([])
      names = new Set()
    }
    names.add(name)
    found.at(-1)!.push(event)
  }
  return found
}
