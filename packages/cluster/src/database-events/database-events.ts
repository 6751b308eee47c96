/**
 * Records that databases were created, written to and deleted, as documents of a database of their own, whose
 * changes feed is `_db_updates`. Every node reports what it sees: changes of the metadata, and commits of its own
 * replicas. So an event is lost only with all nodes that saw it, and comes up to once for each of them.
 *
 * Nothing is recorded before somebody asks for the feed for the first time (`open`); then what stands is recorded.
 */
import { ApiError } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import type { Runtime, Timer } from '@sectional/runtime'
import type { LocalReplicas } from '../anti-entropy/local-replicas.ts'
import type { ClusterState, DatabaseRecord } from '../control/cluster-state.ts'
import type { ControlPlane } from '../control/control-plane.ts'
import { DatabaseMap } from '../control/database-map.ts'
import type { Coordinator, RequestContext } from '../coordinator/coordinator.ts'
import { defaultDatabaseEventsOptions } from './database-events-options.ts'
import type { DatabaseEventsOptions } from './database-events-options.ts'
import { eventId, eventsDatabase, eventWrite, incarnationOf, parseEventId } from './event-document.ts'
import type { EventKind } from './event-document.ts'

export interface DatabaseEventsParts {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly control: Pick<ControlPlane, 'state' | 'onChange' | 'createDatabase' | 'confirmAbsent'>
  readonly local: Pick<LocalReplicas, 'shards' | 'replica' | 'onCommit'>
  readonly coordinator: Pick<Coordinator, 'openDocuments' | 'updateDocuments' | 'listDocuments'>
  /** `global_changes/update_db`. */
  readonly enabled: () => boolean
  /** Replicas that the events are to have. */
  readonly replicas: () => number
  readonly options?: Partial<DatabaseEventsOptions>
}

type Databases = ClusterState['databases']

/** What is recorded, and since when. */
interface Recording {
  readonly log: DatabaseRecord
  /** Ends with the first attempt to record what stood when the recording began. */
  begun: Promise<void>
  databases: Databases
  readonly names: Map<string, string>
  /** Id of the event -> incarnation: what is to be written. At most three for each database. */
  readonly pending: Map<string, string>
  /** Something that stood at the beginning could not be read yet. */
  incomplete: boolean
}

export class DatabaseEvents {
  readonly #parts: DatabaseEventsParts
  readonly #options: DatabaseEventsOptions
  readonly #abort = new AbortController()
  readonly #unsubscribe: (() => void)[] = []
  #recording: Recording | undefined
  #timer: Timer | undefined
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
    await this.#recording?.begun
    await this.#flushing
  }

  /**
   * The database whose changes are the events; made when it is asked for the first time.
   * @throws ApiError `database_missing` when events are not wanted, `service_unavailable` while it cannot be made
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

  /** One shard: events are few, and stand in one order. */
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
    if (recording.databases !== state.databases) this.#compare(recording, state.databases)
  }

  #begin(log: DatabaseRecord, databases: Databases): void {
    const recording: Recording = {
      log, databases, names: new Map(), pending: new Map(), incomplete: false, begun: Promise.resolve(),
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
      if (made !== undefined) {
        recording.names.set(made.incarnation, made.name)
        this.#add(recording, 'created', made.name, made.incarnation)
      }
      if (gone === undefined) continue
      recording.names.delete(gone.incarnation)
      this.#add(recording, 'deleted', gone.name, gone.incarnation)
    }
  }

  #committed({ incarnation }: ShardId): void {
    const recording = this.#recording
    const name = recording?.names.get(incarnation)
    if (recording !== undefined && name !== undefined) this.#add(recording, 'updated', name, incarnation)
  }

  #add(recording: Recording, kind: EventKind, name: string, incarnation: string): void {
    if (name === eventsDatabase) return
    recording.pending.set(eventId({ kind, name }), incarnation)
    this.#schedule()
  }

  #schedule(minMs = this.#options.delayMs): void {
    if (this.#timer !== undefined || this.#flushing !== undefined || this.#abort.signal.aborted) return
    const { clock } = this.#parts.runtime
    const restMs = this.#flushedAt + this.#options.intervalMs - clock.monotonic()
    this.#timer = clock.setTimer(Math.max(minMs, restMs), () => {
      this.#timer = undefined
      this.#startFlush()
    })
  }

  #startFlush(): void {
    this.#flushing = this.#flush().then(succeeded => {
      this.#flushing = undefined
      this.#flushedAt = this.#parts.runtime.clock.monotonic()
      const left = this.#recording
      if (left !== undefined && (left.pending.size > 0 || left.incomplete)) this.#schedule(succeeded ? this.#options.delayMs : this.#options.retryMs)
    })
  }

  /** Never rejects: what could not be written is tried again. */
  async #flush(): Promise<boolean> {
    const recording = this.#recording
    if (recording === undefined) return true
    try {
      if (recording.incomplete) await this.#readStanding(recording)
      const events = [...recording.pending]
      for (let at = 0; at < events.length; at += this.#options.batchMax) await this.#write(recording, events.slice(at, at + this.#options.batchMax))
      return true
    } catch (error) {
      this.#parts.runtime.log.debug({ error: String(error) }, 'events of databases could not be recorded; this is tried again')
      return false
    }
  }

  /** What another node recorded at the same time is looked at again: only a row behind the event tells of it. */
  async #write({ log, pending }: Recording, batch: readonly (readonly [string, string])[]): Promise<void> {
    const { coordinator } = this.#parts
    for (const [id] of batch) pending.delete(id)
    let done = 0
    try {
      const recorded = await coordinator.openDocuments(log, batch.map(([id]) => id), { body: true }, this.#context())
      const writes = batch.flatMap(([id, incarnation], index) => eventWrite(parseEventId(id)!, incarnation, recorded[index] ?? null) ?? [])
      const outcomes = writes.length === 0 ? [] : await coordinator.updateDocuments(log, writes, {}, this.#context())
      const failed = new Set(writes.filter((_, index) => outcomes[index]!.kind !== 'written').map(({ id }) => id))
      for (const [id, incarnation] of batch) if (failed.has(id) && !pending.has(id)) pending.set(id, incarnation)
      done = batch.length
    } finally {
      for (const [id, incarnation] of batch.slice(done)) if (!pending.has(id)) pending.set(id, incarnation)
    }
  }

  async #recordStanding(recording: Recording): Promise<void> {
    recording.incomplete = true
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#flushing
    if (this.#recording !== recording || this.#abort.signal.aborted) return
    this.#startFlush()
    await this.#flushing
  }

  /** Events that this node may have missed, or that came before the recording: deletions, creations, and documents that it holds. */
  async #readStanding(recording: Recording): Promise<void> {
    const { coordinator, local } = this.#parts
    const { log, names } = recording
    const list = await coordinator.listDocuments(log, { descending: false, skip: 0, limit: null, body: true, leaves: false }, this.#context())
    const recorded = new Map<string, string | undefined>()
    for await (const page of list.rows) for (const { id, body } of page) recorded.set(id, incarnationOf(body))
    for (const [id, incarnation] of recorded) {
      const event = parseEventId(id)
      if (event?.kind !== 'created' || incarnation === undefined || recording.databases.get(event.name)?.incarnation === incarnation) continue
      if (recorded.get(eventId({ kind: 'deleted', name: event.name })) !== incarnation) recording.pending.set(eventId({ kind: 'deleted', name: event.name }), incarnation)
    }
    for (const { name, incarnation } of recording.databases.values()) {
      const id = eventId({ kind: 'created', name })
      if (name !== eventsDatabase && recorded.get(id) !== incarnation) recording.pending.set(id, incarnation)
    }
    for (const shard of local.shards()) {
      const name = names.get(shard.incarnation)
      if (name === undefined || name === eventsDatabase || recording.pending.has(eventId({ kind: 'updated', name }))) continue
      const info = await local.replica(shard)?.replicaInfo({ timeoutMs: this.#options.readTimeoutMs, signal: this.#abort.signal })
      if (info !== undefined && info.documentCount + info.deletedCount > 0) recording.pending.set(eventId({ kind: 'updated', name }), shard.incarnation)
    }
    recording.incomplete = false
  }

  #context(): RequestContext {
    return { requestId: 'database-events', signal: this.#abort.signal }
  }
}
