import { activeReplicas } from '@sectional/server'
import type { SwarmOptions } from '../plan/swarm-options.ts'
import type { Schedule } from '../plan/schedule.ts'
import type { Weather } from '../plan/weather.ts'
import type { Answer } from '../world/answer.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import type { ClientAction, ClientSession, Payload, Task } from './client-session.ts'
import { databaseRecord, shardOf } from './history.ts'
import type { History, Operation } from './history.ts'
import { isShared, sharedValues } from './shared-values.ts'

export interface ClientParts {
  readonly name: string
  readonly world: World
  readonly dice: Dice
  readonly history: History
  readonly weather: Weather
  readonly options: SwarmOptions
  readonly schedule: Schedule
  /** All actions that a client may do; their weights are in `options.operations`. */
  readonly actions: readonly ClientAction[]
  /** Returns the numbers of the nodes that a client may send requests to now. */
  readonly reachable: () => readonly number[]
  /** Called in the same turn in which a node acknowledges a write. */
  readonly onAcknowledged: (operation: Operation, revision: string) => void
  /** Called with an answer that no fault explains. */
  readonly onSuspicious: (operation: Operation, answer: Answer) => void
}

/** Errors of rows that no fault causes, while another row may have failed. `not_found`: of a local document. */
const rowErrors: ReadonlySet<string> = new Set(['conflict', 'forbidden', 'not_found'])
const hotChance = 0.3
/** Number of partitions of a partitioned database. */
const partitions = 3

/** One client. It does one action after the other, remembers revisions, and uses another node when one fails. */
export class Client {
  readonly #parts: ClientParts
  /** The newest revision that the client knows, and the one before, by database and id. */
  readonly #known = new Map<string, string>()
  readonly #replaced = new Map<string, string>()
  #home: number
  #values = 0
  readonly session: ClientSession

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.session = {
      name: parts.name, dice: parts.dice, options: parts.options,
      ask: (...request) => this.#ask(...request),
      look: (method, target, json) => parts.world.send(this.#home, method, target, json),
      documentId: () => this.#documentId(),
      known: (database, id) => this.#known.get(`${database}/${id}`),
      replaced: (database, id) => this.#replaced.get(`${database}/${id}`),
      remember: operation => this.#remember(operation),
      moveToCutOff: () => { this.#home = parts.world.cutOff ?? this.#home },
      newValue: () => this.#newValue(),
      drawValue: () => this.#drawValue(),
      body: value => this.#body(value),
      quorum: separator => this.#quorum(separator),
    }
    this.#home = parts.dice.pick(parts.reachable())
  }

  async run(): Promise<void> {
    const { dice, name, options, schedule, world } = this.#parts
    for (let count = 0; count < options.operationsPerClient; count++) {
      await world.sleep(dice.wait(options.thinkMs))
      await world.resumed
      const reachable = this.#parts.reachable()
      if (dice.chance(0.2) || !reachable.includes(this.#home)) this.#home = dice.pick(reachable)
      const action = dice.weighted(options.operations) ?? 'read'
      if (schedule.take(`${name}.${count}`)) await this.#act(action)
    }
  }

  #act(name: string): Promise<unknown> {
    const { actions, dice, options } = this.#parts
    const database = dice.pick(options.databases)
    const id = this.#documentId()
    const action = actions.find(each => each.name === name)
    if (action === undefined) throw new Error(`there is no action "${name}"`)
    return action.act(this.session, database.name, id)
  }

  #documentId(): string {
    const { dice, options } = this.#parts
    const number = dice.chance(hotChance) ? 0 : dice.integer(0, options.documentsPerDatabase - 1)
    return `${options.partitioned ? `${partitionName(number)}:` : ''}d${number}`
  }

  /** Sends one request, which may consist of several operations. */
  async #ask(
    database: string, method: string, target: string, { json, content }: Payload, tasks: readonly Task[],
  ): Promise<readonly Operation[]> {
    const { history, name, options: { r, w }, world, weather } = this.#parts
    const node = this.#home
    const operations = tasks.map(({ kind, id, value = '', parent = null, attachments, paths, tombstone }) =>
      history.begin({ client: name, node, kind, database, id, value, parent, r, w, attachments, paths, tombstone }))
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
      operation.databaseMissing = answer.status === 404 && answer.body.reason === 'Database does not exist.'
      operation.conflict = reading.conflict ?? false
      operation.readValue = reading.readValue
      operation.removed = reading.removed
      operation.rows = reading.rows
      operation.calm = weather.calmSince(operation.startMs)
      operation.calmMs = weather.calmMsAt(operation.startMs)
      history.end(
        operation, answer.status,
        answer.kind === 'refused' ? 'failed' : answer.kind === 'unknown' ? 'unknown' : reading.outcome,
      )
    })
    if (tasks.length === 0) world.say(`${name} ${method} ${target}: ${answer.status}`)
    if (answer.kind !== 'answered') this.#home = this.#parts.dice.pick(this.#parts.reachable())
    return operations
  }

  #answered(
    operations: readonly Operation[], tasks: readonly Task[], answer: Answer, incarnation: string | undefined,
  ): void {
    tasks.forEach((task, index) => {
      const operation = operations[index]!
      operation.incarnationAfter = incarnation
      const { outcome, removed, revision = removed?.[0] } = task.read(answer)
      if (answer.kind === 'answered' && outcome === 'done' && revision !== undefined) {
        this.#parts.onAcknowledged(operation, revision)
      }
    })
    if (answer.status === 500 && !isOutage(answer) && operations[0] !== undefined) {
      this.#parts.onSuspicious(operations[0], answer)
    }
  }

  #remember({ database, id, revision, status, outcome, kind }: Operation): void {
    const key = `${database}/${id}`
    const before = this.#known.get(key)
    if (status === 404 || status === 409 || ((kind === 'delete' || kind === 'purge') && outcome !== 'failed')) {
      this.#known.delete(key)
    } else if (revision !== undefined) this.#known.set(key, revision)
    if (before !== undefined && this.#known.get(key) !== before) this.#replaced.set(key, before)
  }

  #newValue(): string {
    return `${this.#parts.name}.${++this.#values}`
  }

  #drawValue(): string {
    const { dice, options } = this.#parts
    return dice.chance(options.sharedValueShare) ? dice.pick(sharedValues) : this.#newValue()
  }

  #body(value: string): { readonly v: string; readonly pad: string } {
    const { dice, options } = this.#parts
    if (isShared(value)) return { v: value, pad: '' }
    return { v: value, pad: 'x'.repeat(Math.floor(dice.fraction() ** 3 * options.documentBytesMax)) }
  }

  #quorum(separator: '?' | '&'): string {
    const { w } = this.#parts.options
    return w === undefined ? '' : `${separator}w=${w}`
  }
}

/**
 * Returns whether the answer reports a range without a reachable replica, a timeout, or an edit whose outcome is
 * unknown.
 */
function isOutage({ body }: Answer): boolean {
  if (Array.isArray(body)) {
    return body.every(row => row.ok === true || rowErrors.has(row.error)
      || isOutage({ kind: 'answered', status: 500, body: row }))
  }
  return body.error === 'timeout' || body.error === 'service unavailable'
}

/** Returns the partition of the document with that number. */
export function partitionName(number: number): string {
  return `p${number % partitions}`
}
