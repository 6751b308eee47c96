import { activeReplicas } from '@sectional/server'
import type { ClientAction, DatabaseOptions, SwarmOptions } from '../plan/swarm-options.ts'
import type { Schedule } from '../plan/schedule.ts'
import type { Weather } from '../plan/weather.ts'
import type { Answer } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { attach, detach, inline, readAttachment, writeWithAttachments } from './attachment-work.ts'
import type { ContentName } from './attachment-content.ts'
import { outcomeOf, readWritten } from './client-session.ts'
import type { ClientSession, Payload, Reading, Task } from './client-session.ts'
import { databaseRecord, shardOf } from './history.ts'
import type { History, Operation } from './history.ts'
import { compact, purge } from './purge-work.ts'

export interface ClientParts {
  readonly name: string
  readonly world: World
  readonly dice: Dice
  readonly history: History
  readonly weather: Weather
  readonly options: SwarmOptions
  readonly schedule: Schedule
  /** Nodes that a client may turn to now. */
  readonly reachable: () => readonly number[]
  /** A node has just acknowledged a write, in this very turn. */
  readonly onAcknowledged: (operation: Operation, revision: string) => void
  /** An answer that no fault explains. */
  readonly onSuspicious: (operation: Operation, answer: Answer) => void
}

const hotChance = 0.3
/** A client that knows a document's revision asks anew with this probability. */
const refreshChance = 0.3

/** One client: does one thing after the other, remembers revisions, and turns to another node when one fails it. */
export class Client {
  readonly #parts: ClientParts
  readonly #known = new Map<string, string>()
  readonly #older = new Map<string, string>()
  #home: number
  #values = 0
  readonly #session: ClientSession

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#session = {
      name: parts.name, dice: parts.dice, options: parts.options,
      ask: (...request) => this.#ask(...request),
      look: (method, target) => parts.world.send(this.#home, method, target),
      known: (database, id) => this.#known.get(`${database}/${id}`),
      remember: operation => this.#remember(operation),
      newValue: () => this.#newValue(),
      body: value => this.#body(value),
      quorum: separator => this.#quorum(separator),
    }
    this.#home = parts.dice.pick(parts.reachable())
  }

  async run(): Promise<void> {
    const { dice, name, options, schedule, world } = this.#parts
    for (let count = 0; count < options.operationsPerClient; count++) {
      await world.sleep(dice.wait(options.thinkMs))
      const reachable = this.#parts.reachable()
      if (dice.chance(0.2) || !reachable.includes(this.#home)) this.#home = dice.pick(reachable)
      const action = dice.weighted(options.operations) ?? 'read'
      if (schedule.take(`${name}.${count}`)) await this.#act(action)
    }
  }

  #act(action: ClientAction): Promise<unknown> {
    const { dice, options } = this.#parts
    const database = dice.pick(options.databases)
    const id = this.#documentId()
    switch (action) {
      case 'read': return this.#read(database.name, id)
      case 'open-revisions': return this.#openRevisions(database.name, id)
      case 'list': return this.#list(database.name)
      case 'write': return this.#write(database.name, id)
      case 'blind-write': return this.#put(database.name, id, null)
      case 'stale-write': return this.#put(database.name, id, this.#older.get(`${database.name}/${id}`) ?? null)
      case 'delete': return this.#delete(database.name, id)
      case 'bulk': return this.#bulk(database.name)
      case 'graft': return this.#graft(database.name, id)
      case 'attach': return attach(this.#session, database.name, id)
      case 'write-attachments': return writeWithAttachments(this.#session, database.name, id)
      case 'detach': return detach(this.#session, database.name, id)
      case 'read-attachment': return readAttachment(this.#session, database.name, id)
      case 'purge-revision': return purge(this.#session, database.name, id, 'one leaf')
      case 'purge-document': return purge(this.#session, database.name, id, 'all leaves')
      case 'compact': return compact(this.#session, database.name)
      case 'local-write': return this.#writeLocal(database.name, id)
      case 'local-delete': return this.#deleteLocal(database.name, id)
      case 'create-database': return this.createDatabase(dice.pick(options.databases))
      case 'delete-database': return this.#deleteDatabase(options.databases.filter(each => each.fleeting))
    }
  }

  #documentId(): string {
    const { dice, options } = this.#parts
    return `d${dice.chance(hotChance) ? 0 : dice.integer(0, options.documentsPerDatabase - 1)}`
  }

  async #read(database: string, id: string): Promise<void> {
    const { r } = this.#parts.options
    const [operation] = await this.#ask(database, 'GET', `/${database}/${id}${r === undefined ? '' : `?r=${r}`}`, {}, [{ kind: 'read', id, read: readDocument }])
    if (operation?.revision !== undefined) this.#remember(operation)
  }

  async #openRevisions(database: string, id: string): Promise<void> {
    await this.#ask(database, 'GET', `/${database}/${id}?open_revs=all&revs=true`, {}, [])
  }

  async #list(database: string): Promise<void> {
    await this.#ask(database, 'GET', `/${database}/_all_docs?include_docs=true&conflicts=true`, {}, [])
  }

  async #write(database: string, id: string): Promise<void> {
    if (!this.#known.has(`${database}/${id}`) || this.#parts.dice.chance(refreshChance)) await this.#read(database, id)
    await this.#put(database, id, this.#known.get(`${database}/${id}`) ?? null)
  }

  async #put(database: string, id: string, parent: string | null): Promise<void> {
    const value = this.#newValue()
    const json = { ...this.#body(value), ...(parent === null ? {} : { _rev: parent }) }
    const [operation] = await this.#ask(database, 'PUT', `/${database}/${id}${this.#quorum('?')}`, { json }, [{ kind: 'write', id, value, parent, read: readWritten }])
    this.#remember(operation!)
  }

  async #delete(database: string, id: string): Promise<void> {
    const parent = this.#known.get(`${database}/${id}`)
    if (parent === undefined) return this.#read(database, id)
    const [operation] = await this.#ask(database, 'DELETE', `/${database}/${id}?rev=${parent}${this.#quorum('&')}`, {}, [{ kind: 'delete', id, parent, read: readWritten }])
    this.#remember(operation!)
  }

  async #bulk(database: string): Promise<void> {
    const { dice, options } = this.#parts
    const ids = Array.from({ length: dice.integer(1, options.bulkMax) }, () => this.#documentId())
    const writes = ids.map(id => ({ id, parent: this.#known.get(`${database}/${id}`) ?? null, value: this.#newValue(), deleted: dice.chance(0.1) }))
    const docs = writes.map(({ id, parent, value, deleted }) => ({
      _id: id, ...(parent === null ? {} : { _rev: parent }), ...(deleted && parent !== null ? { _deleted: true } : {}), ...this.#body(value),
    }))
    const tasks = writes.map(({ id, parent, value, deleted }, index): Task => ({
      kind: deleted && parent !== null ? 'delete' : 'write', id, parent, value, read: answer => readRow(answer, index),
    }))
    const json = { docs, ...(options.w === undefined ? {} : { w: options.w }) }
    for (const operation of await this.#ask(database, 'POST', `/${database}/_bulk_docs`, { json }, tasks)) this.#remember(operation)
  }

  /** Revisions that were made elsewhere, as a replicator brings them: conflict branches above all. */
  async #graft(database: string, id: string): Promise<void> {
    const { dice, options, world } = this.#parts
    const value = this.#newValue()
    const hash = (): string => Array.from({ length: 4 }, () => dice.seed().toString(16).padStart(8, '0')).join('')
    // A replicator knows the whole ancestry; a shorter one would leave replicas with trees of different depth.
    const known: readonly string[] = (await world.send(this.#home, 'GET', `/${database}/${id}?revs=true`)).body?._revisions?.ids ?? []
    const ids = dice.chance(0.3) ? [hash(), hash()] : [hash(), ...known.slice(dice.integer(0, Math.min(2, known.length)))]
    const revision = `${ids.length}-${ids[0]}`
    const contents: Record<string, ContentName | 'inherited'> = {}
    const attachments = options.operations['write-attachments'] > 0 && dice.chance(0.3) ? { _attachments: inline(this.#session, contents) } : {}
    const tombstone = dice.chance(0.15)
    const doc = { _id: id, _rev: revision, _revisions: { start: ids.length, ids }, ...(tombstone ? { _deleted: true } : {}), ...this.#body(value), ...attachments }
    const json = { docs: [doc], new_edits: false, ...(options.w === undefined ? {} : { w: options.w }) }
    await this.#ask(database, 'POST', `/${database}/_bulk_docs`, { json }, [{
      kind: 'graft', id, value, attachments: { inherits: false, contents }, paths: [{ start: ids.length, ids }], tombstone, read: answer => readGraft(answer, revision),
    }])
  }

  async #writeLocal(database: string, id: string): Promise<void> {
    const value = this.#newValue()
    await this.#ask(database, 'PUT', `/${database}/_local/${id}${this.#quorum('?')}`, { json: this.#body(value) }, [{ kind: 'local-write', id, value, read: readWritten }])
  }

  async #deleteLocal(database: string, id: string): Promise<void> {
    await this.#ask(database, 'DELETE', `/${database}/_local/${id}${this.#quorum('?')}`, {}, [{ kind: 'local-delete', id, read: readWritten }])
  }

  /** Resolves with whether it is there for sure. */
  async createDatabase({ name, q, n }: DatabaseOptions): Promise<boolean> {
    const [operation] = await this.#ask(name, 'PUT', `/${name}?q=${q}&n=${n}`, {}, [{ kind: 'create-database', id: '', read: readDatabaseChange }])
    return operation!.outcome === 'done' || operation!.status === 412
  }

  /** Resolves with whether it is so for sure. */
  async limitRevisions(database: string, limit: number): Promise<boolean> {
    const { status } = await this.#parts.world.send(this.#home, 'PUT', `/${database}/_revs_limit`, limit)
    return status === 200
  }

  async #deleteDatabase(fleeting: readonly DatabaseOptions[]): Promise<void> {
    if (fleeting.length === 0) return
    const { name } = this.#parts.dice.pick(fleeting)
    await this.#ask(name, 'DELETE', `/${name}`, {}, [{ kind: 'delete-database', id: '', read: readDatabaseChange }])
  }

  /** One request, which may be several operations. */
  async #ask(database: string, method: string, target: string, { json, content }: Payload, tasks: readonly Task[]): Promise<readonly Operation[]> {
    const { history, name, options: { r, w }, world, weather } = this.#parts
    const node = this.#home
    const operations = tasks.map(({ kind, id, value = '', parent = null, attachments, paths, tombstone }) => history.begin({ client: name, node, kind, database, id, value, parent, r, w, attachments, paths, tombstone }))
    const incarnation = (): string | undefined => databaseRecord(world.node(node), database)?.incarnation
    const answer = await world.send(node, method, target, json, {
      content,
      onDelivered: () => {
        const record = databaseRecord(world.node(node), database)
        for (const operation of operations) {
          operation.incarnationBefore = record?.incarnation
          operation.activeBefore = record === undefined ? 0 : activeReplicas(shardOf(record, operation.id)).length
        }
      },
      onAnswered: early => this.#answered(operations, tasks, early, incarnation()),
    })
    tasks.forEach((task, index) => {
      const operation = operations[index]!
      const reading = task.read(answer)
      operation.revision = reading.revision
      operation.conflict = reading.conflict ?? false
      operation.readValue = reading.readValue
      operation.removed = reading.removed
      operation.calm = weather.calmSince(operation.startMs)
      history.end(operation, answer.status, answer.kind === 'refused' ? 'failed' : answer.kind === 'unknown' ? 'unknown' : reading.outcome)
    })
    if (tasks.length === 0) world.say(`${name} ${method} ${target}: ${answer.status}`)
    if (answer.kind !== 'answered') this.#home = this.#parts.dice.pick(this.#parts.reachable())
    return operations
  }

  #answered(operations: readonly Operation[], tasks: readonly Task[], answer: Answer, incarnation: string | undefined): void {
    tasks.forEach((task, index) => {
      const operation = operations[index]!
      operation.incarnationAfter = incarnation
      const { outcome, removed, revision = removed?.[0] } = task.read(answer)
      if (answer.kind === 'answered' && outcome === 'done' && revision !== undefined) this.#parts.onAcknowledged(operation, revision)
    })
    if (answer.status === 500 && !isOutage(answer) && operations[0] !== undefined) this.#parts.onSuspicious(operations[0], answer)
  }

  #remember({ database, id, revision, status, outcome, kind }: Operation): void {
    const key = `${database}/${id}`
    const before = this.#known.get(key)
    if (status === 404 || status === 409 || ((kind === 'delete' || kind === 'purge') && outcome !== 'failed')) this.#known.delete(key)
    else if (revision !== undefined) this.#known.set(key, revision)
    if (before !== undefined && this.#known.get(key) !== before) this.#older.set(key, before)
  }

  #newValue(): string {
    return `${this.#parts.name}.${++this.#values}`
  }

  #body(value: string): { readonly v: string; readonly pad: string } {
    const { dice, options } = this.#parts
    return { v: value, pad: 'x'.repeat(Math.floor(dice.fraction() ** 3 * options.documentBytesMax)) }
  }

  #quorum(separator: '?' | '&'): string {
    const { w } = this.#parts.options
    return w === undefined ? '' : `${separator}w=${w}`
  }
}

/** A range without a reachable replica, nobody who answers in time, or an edit whose outcome is unknown. */
function isOutage({ body }: Answer): boolean {
  if (Array.isArray(body)) return body.every(row => row.ok === true || isOutage({ kind: 'answered', status: 500, body: row }) || row.error === 'conflict')
  return body.error === 'timeout' || body.error === 'service unavailable' || body.reason === 'No DB shards could be opened.'
}

function readDocument({ status, body }: Answer): Reading {
  return status === 200 ? { outcome: 'done', revision: body._rev, readValue: body.v } : { outcome: status === 404 ? 'done' : 'failed' }
}

function readRow({ status, body }: Answer, index: number): Reading {
  const row = Array.isArray(body) ? body[index] : undefined
  if (row === undefined) return { outcome: outcomeOf(status) === 'failed' ? 'failed' : 'unknown' }
  if (row.ok !== true) return { outcome: 'unknown', conflict: row.error === 'conflict' }
  return { outcome: row.accepted === true ? 'accepted' : 'done', revision: row.rev }
}

/** Only failures have rows. */
function readGraft({ status, body }: Answer, revision: string): Reading {
  if (!Array.isArray(body)) return { outcome: outcomeOf(status) === 'failed' ? 'failed' : 'unknown' }
  if (body.length > 0) return { outcome: 'unknown' }
  return { outcome: status === 202 ? 'accepted' : 'done', revision }
}

function readDatabaseChange({ status }: Answer): Reading {
  return { outcome: outcomeOf(status) }
}
