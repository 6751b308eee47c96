import type { SwarmOptions } from '../plan/swarm-options.ts'
import type { Schedule } from '../plan/schedule.ts'
import type { Dice } from '../world/dice.ts'
import type { World } from '../world/world.ts'
import { readFeed } from './feed-places.ts'
import type { FeedAnswer, FeedPlace, FeedPlaces, FeedRow } from './feed-places.ts'
import { databaseRecord } from './history.ts'
import type { History, ShownRow } from './history.ts'

export interface ChangesReaderParts {
  readonly name: string
  readonly world: World
  readonly dice: Dice
  readonly options: SwarmOptions
  readonly schedule: Schedule
  readonly places: FeedPlaces
  readonly history: History
}

/** The parameters of one feed. */
export interface FeedRequest {
  readonly node: number
  readonly database: string
  readonly since: FeedPlace | null
  readonly kind: FeedKind
  readonly limit?: number
  readonly allLeaves?: boolean
  /** Milliseconds that a following feed waits for a change. */
  readonly timeoutMs?: number
  /** Further query parameters. */
  readonly query?: string
}

export const feedKinds = ['normal', 'longpoll', 'continuous', 'eventsource'] as const
export type FeedKind = (typeof feedKinds)[number]

const feedShares: Readonly<Record<FeedKind, number>> = { normal: 5, longpoll: 2, continuous: 3, eventsource: 1 }
const fromStartChance = 0.15
const ownPlaceChance = 0.5
const followMsMax = 4000
const limitMax = 12
/** Number of rows of one answer whose tokens are kept, in addition to the token at its end. */
const rowTokensKept = 3
const requestMsMax = 60_000

/** Reads changes through any node, from the beginning or from any token that any reader has received. */
export class ChangesReader {
  readonly #parts: ChangesReaderParts
  #newest: FeedPlace | null = null
  #reads = 0

  constructor(parts: ChangesReaderParts) {
    this.#parts = parts
  }

  get reads(): number { return this.#reads }

  async run(isOver: () => boolean): Promise<void> {
    const { dice, name, options, schedule, world } = this.#parts
    for (let count = 0; count < options.readsPerReader && !isOver(); count++) {
      await world.sleep(dice.wait(options.thinkMs * 3))
      await world.resumed
      const request = this.#draw()
      if (!schedule.take(`${name}.${count}`)) continue
      const place = await this.#read(request)
      if (place !== null) this.#newest = place
    }
  }

  #draw(): FeedRequest {
    const { dice, options, places, world } = this.#parts
    const { name } = dice.pick(options.databases)
    const given = places.of(name)
    const own = this.#newest?.database === name && dice.chance(ownPlaceChance) ? this.#newest : undefined
    const since = given.length === 0 || dice.chance(fromStartChance) ? null : own ?? dice.pick(given)
    return {
      node: dice.pick(world.nodes).number, database: name, since, kind: dice.weighted(feedShares) ?? 'normal',
      ...(dice.chance(0.5) && { limit: dice.integer(1, limitMax) }),
      allLeaves: dice.chance(0.5), timeoutMs: dice.integer(50, followMsMax),
      query: dice.pick([
        '', '', '', '&include_docs=true', '&seq_interval=3', '&include_docs=true&conflicts=true&attachments=true',
      ]),
    }
  }

  async #read(request: FeedRequest): Promise<FeedPlace | null> {
    const { dice, history, name, places, world } = this.#parts
    const operation = history.begin({
      client: name, node: request.node, kind: 'feed', database: request.database, id: '', value: '', parent: null,
    })
    const { answer, incarnation } = await readChanges(world, request)
    operation.incarnationBefore = operation.incarnationAfter = incarnation
    operation.rows = answer?.rows.flatMap(shownRows)
    history.end(operation, 0, answer === null ? 'unknown' : 'done')
    if (answer === null || incarnation === undefined) return null
    this.#reads++
    const from = request.since?.incarnation === incarnation ? request.since : null
    const { rows, lastToken } = answer
    const place = (token: string, count: number): FeedPlace => ({
      token, database: request.database, incarnation, from, rows: rows.slice(0, count),
    })
    const tokens = rows.flatMap(({ token }, index) => token === null ? [] : [place(token, index + 1)])
    for (let kept = 0; kept < rowTokensKept && tokens.length > 0; kept++) places.add(dice.pick(tokens))
    const end = lastToken === null ? tokens.at(-1) ?? null : place(lastToken, rows.length)
    if (end !== null) places.add(end)
    return end
  }
}

function shownRows({ id, leaves, value }: FeedRow): ShownRow[] {
  return leaves.map((revision, index) => ({ id, revision, ...(index === 0 && value !== undefined && { value }) }))
}

/**
 * Reads one feed to its end, or until the connection breaks.
 * @returns a null answer when there is none; the incarnation that was read, if it was the same at the start and the end
 */
export async function readChanges(
  world: World, { node, database, since, kind, limit, allLeaves = false, timeoutMs = 0, query = '' }: FeedRequest,
): Promise<{ readonly answer: FeedAnswer | null; readonly incarnation: string | undefined }> {
  const follow = kind === 'normal' ? '' : `&timeout=${timeoutMs}`
  const bounds = `${limit === undefined ? '' : `&limit=${limit}`}${allLeaves ? '&style=all_docs' : ''}`
  const target = `/${database}/_changes?feed=${kind}${follow}&since=${since?.token ?? 0}${bounds}${query}`
  const incarnation = (): string | undefined => databaseRecord(world.node(node), database)?.incarnation
  let before: string | undefined
  let after: string | undefined
  const { status, body, kind: outcome, ...rest } = await world.send(node, 'GET', target, undefined, {
    timeoutMs: requestMsMax, onDelivered: () => { before = incarnation() }, onAnswered: () => { after = incarnation() },
  })
  if (status === 400) {
    world.fail('safety', 'changes-complete', `node ${node} refuses a token of ${database} that it or another node `
      + `gave: ${JSON.stringify(body)} for ${since?.token}`)
  }
  const text = outcome === 'answered'
    ? (status === 200 ? body : undefined)
    : (rest as { readonly partial?: string }).partial
  const answer = text === undefined ? null : readFeed(text)
  const received = `${answer?.rows.map(({ id }) => id).join(' ') ?? ''} ${answer?.lastToken ?? ''}`
  world.say(`feed ${kind} of ${database} through node ${node} since ${since?.token ?? 0}: ${status} ${received}`)
  return { answer, incarnation: before === after ? before : undefined }
}
