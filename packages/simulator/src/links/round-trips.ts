/**
 * Calls of every verb between two nodes, and consensus messages of every type, with drawn values in all fields. What
 * one end is given must arrive at the other end: the request with its context, and the answer or the error.
 */
import { controlVerbs, deriveVerbs, mapVerbs, ReplicaError, replicaErrorCodes, shardPeerVerbs } from '@sectional/core'
import type { CallContext, ControlPeer, PeerNetwork, RaftMessage, ShardId, ShardPeer } from '@sectional/core'
import { DrawnValues, drawnControlVerbs, drawnRaftMessages, drawnShardVerbs } from '@sectional/core/verb-values'
import type { DrawnVerb } from '@sectional/core/verb-values'
import type { Dice } from '../world/dice.ts'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { textOf } from '../world/value-text.ts'
import type { World } from '../world/world.ts'

/** The incarnation of the shards on which the calls are made. No node has them. */
export const roundTripIncarnation = 'round trips'

/** Terms of the drawn consensus messages. No node reaches them. */
const termMin = 2 ** 52
const timeoutMs = 20_000
const raftMsMax = 5000
const pollMs = 50
const failureChance = 0.1
const pagesMax = 3
/** Of this number of calls, two have a request above 1 MiB, or two an answer. */
const largeCalls = 3
const largeVerbs = ['storeRevisions', 'updateLocalDocument', 'openRevisions', 'scanDocuments'] as const
const drawsMax = 20

/** One call whose request and answer are known. */
interface Trip {
  readonly verb: string
  readonly to: SimulatedNode
  readonly request: unknown
  readonly context: CallContext
  /** Pages of rows or chunks of a verb that has them, and otherwise one page with the reply. */
  readonly pages: readonly (readonly unknown[])[]
  /** The call fails with this after the first page; undefined: it succeeds. */
  readonly error: ReplicaError | undefined
  arrived: boolean
}

interface ServedAt { readonly trips: RoundTrips; readonly node: SimulatedNode }

const ServedShard = deriveVerbs<typeof shardPeerVerbs, ServedAt>(shardPeerVerbs, {
  call: ({ name }) => (at, request, context) => at.trips.reply(name, at.node, request, context),
  pages: ({ name }) => (at, request, context) => at.trips.pages(name, at.node, request, context),
  upload: ({ name }) => async (at, chunks, context) =>
    at.trips.reply(name, at.node, await joined(chunks), context),
  download: ({ name }) => async function* (at, request, context) {
    for await (const page of at.trips.pages(name, at.node, request, context)) yield* page as readonly Uint8Array[]
  },
})

const ServedControl = deriveVerbs<typeof controlVerbs, ServedAt & { readonly peer: ControlPeer }>(controlVerbs, {
  call: ({ name, invoke }) => (at, request, context) => at.trips.isTrip(context)
    ? at.trips.reply(name, at.node, request, context) : invoke(at.peer, request, context),
})

type Invoke = (peer: ShardPeer, request: unknown, context: CallContext) => Promise<unknown>

/** Calls a verb of a shard and returns the rows, the chunks or the reply. */
const shardCalls: ReadonlyMap<string, Invoke> = mapVerbs<typeof shardPeerVerbs, Invoke>(shardPeerVerbs, {
  call: ({ invoke }) => async (peer, request, context) => [await invoke(peer, request, context)],
  pages: ({ invoke }) => async (peer, request, context) => {
    const rows: unknown[] = []
    for await (const page of invoke(peer, request, context)) rows.push(...page)
    return rows
  },
  upload: ({ invoke }) => async (peer, request, context) =>
    [await invoke(peer, chunksOf(request as Uint8Array), context)],
  download: ({ invoke }) => async (peer, request, context) => collected(invoke(peer, request, context)),
})

const controlCalls = mapVerbs<
  typeof controlVerbs, (peer: ControlPeer, request: unknown, context: CallContext) => Promise<unknown>
>(controlVerbs, {
  call: ({ invoke }) => async (peer, request, context) => [await invoke(peer, request, context)],
})

const streamed = new Set(mapVerbs<typeof shardPeerVerbs, string>(shardPeerVerbs, {
  call: () => '', pages: ({ name }) => name, upload: () => '', download: ({ name }) => name,
}).values())

export class RoundTrips {
  readonly #world: World
  readonly #networkOf: (node: SimulatedNode) => PeerNetwork
  readonly #trips = new Map<string, Trip>()
  /** The text of each consensus message that was sent and has not arrived, by its term. */
  readonly #raft = new Map<number, string>()
  #last = 0

  constructor(world: World, networkOf: (node: SimulatedNode) => PeerNetwork) {
    this.#world = world
    this.#networkOf = networkOf
  }

  /** Makes the calls from one node to another, to which it has a link that nothing disturbs. */
  async make(from: SimulatedNode, to: SimulatedNode, dice: Dice, large: boolean): Promise<void> {
    await Promise.all([
      ...Object.keys(drawnShardVerbs).map(verb => this.#shardCall(verb, from, to, dice, false)),
      ...Object.keys(drawnControlVerbs).map(verb => this.#controlCall(verb, from, to, dice)),
      this.#raftMessages(from, to, dice),
    ])
    for (let count = large ? largeCalls : 0; count > 0; count--) {
      await this.#shardCall(dice.pick(largeVerbs), from, to, dice, true)
    }
  }

  /** Returns what a node serves of the shards of these calls. */
  served(node: SimulatedNode): ShardPeer { return new ServedShard({ trips: this, node }) }

  /** Returns a peer that serves these calls, and passes on all others. */
  control(node: SimulatedNode, peer: ControlPeer): Omit<ControlPeer, 'sendRaft'> {
    return new ServedControl({ trips: this, node, peer })
  }

  isTrip({ requestId }: CallContext): boolean { return requestId !== undefined && this.#trips.has(requestId) }

  /** Receives a consensus message. Returns false when it is not one of those that were sent here. */
  receive(message: RaftMessage): boolean {
    if (message.term < termMin) return false
    const sent = this.#raft.get(message.term)
    if (sent !== textOf(message)) this.#report('a consensus message', sent ?? 'nothing', textOf(message))
    this.#raft.delete(message.term)
    return true
  }

  async reply(verb: string, at: SimulatedNode, request: unknown, context: CallContext): Promise<unknown> {
    const { error, pages: [page] } = this.#arrived(verb, at, request, context)
    if (error !== undefined) throw error
    return page![0]
  }

  async *pages(
    verb: string, at: SimulatedNode, request: unknown, context: CallContext,
  ): AsyncGenerator<readonly unknown[]> {
    const { error, pages } = this.#arrived(verb, at, request, context)
    for (const page of pages) {
      yield page
      if (error !== undefined) throw error
    }
  }

  #arrived(verb: string, at: SimulatedNode, request: unknown, context: CallContext): Trip {
    const trip = this.#trips.get(context.requestId ?? '')
    if (trip?.verb !== verb || trip.to !== at || trip.arrived) {
      this.#report(`a call of ${verb}`, trip?.verb ?? 'nothing', `${context.requestId} on ${at.name}`)
      throw new ReplicaError('protocol', 'an unknown call')
    }
    trip.arrived = true
    const [sent, received] = [trip, { request, context }].map(each => textOf([each.request, contextOf(each.context)]))
    if (sent !== received) this.#report(`the request of ${verb}`, sent!, received!)
    return trip
  }

  #shardCall(verb: string, from: SimulatedNode, to: SimulatedNode, dice: Dice, large: boolean): Promise<void> {
    const drawn = drawnShardVerbs[verb as keyof typeof drawnShardVerbs]
    const [begin, end] = [dice.seed(), dice.seed()].sort((a, b) => a - b) as [number, number]
    const shard: ShardId = { incarnation: `${roundTripIncarnation} ${begin}`, range: { begin, end } }
    const network = this.#networkOf(from)
    const peer = { replica: network.replica(to.name, shard), indexes: network.indexes(to.name, shard) }
    const isStreamed = streamed.has(verb)
    return this.#call(verb, to, dice, { ...drawn, isStreamed, large }, (request, context) =>
      shardCalls.get(verb)!(peer, request, context))
  }

  #controlCall(verb: string, from: SimulatedNode, to: SimulatedNode, dice: Dice): Promise<void> {
    const drawn = drawnControlVerbs[verb as keyof typeof drawnControlVerbs]
    const peer = this.#networkOf(from).control(to.name)
    return this.#call(verb, to, dice, { ...drawn, isStreamed: false, large: false }, (request, context) =>
      controlCalls.get(verb)!(peer, request, context))
  }

  async #call(
    verb: string, to: SimulatedNode, dice: Dice,
    { isStreamed, large, reply, request }: DrawnVerb & { readonly isStreamed: boolean; readonly large: boolean },
    invoke: (request: unknown, context: CallContext) => Promise<unknown>,
  ): Promise<void> {
    const id = `trip${++this.#last}`
    const values = new DrawnValues(dice)
    const page = (count: number): unknown[] => Array.from({ length: count }, () => reply(values))
    const pages = isStreamed ? values.list(() => page(dice.integer(0, pagesMax)), 1) : [page(1)]
    const trip: Trip = {
      verb, to, arrived: false,
      request: draw(dice, large, request ?? (drawn => drawn.bytes())),
      context: { requestId: id, history: values.maybe(() => values.text()), timeoutMs: timeoutMs + dice.fraction() },
      pages: large ? [...pages.slice(0, 1), [draw(dice, true, reply)]].slice(isStreamed ? 0 : 1) : pages,
      error: dice.chance(failureChance) ? drawError(dice, values) : undefined,
    }
    this.#trips.set(id, trip)
    const wanted = trip.error === undefined ? textOf(trip.pages.flat()) : errorText(trip.error)
    const found = await invoke(trip.request, trip.context).then(textOf, errorText)
    if (found !== wanted) this.#report(`the answer to ${verb}`, wanted, found)
    this.#trips.delete(id)
  }

  async #raftMessages(from: SimulatedNode, to: SimulatedNode, dice: Dice): Promise<void> {
    const address = (): Pick<RaftMessage, 'from' | 'to' | 'term'> =>
      ({ from: from.name, to: to.name, term: termMin + ++this.#last })
    const peer = this.#networkOf(from).control(to.name)
    const messages = drawnRaftMessages(new DrawnValues(dice), address)
    for (const message of messages) {
      this.#raft.set(message.term, textOf(message))
      peer.sendRaft(message)
    }
    const endMs = this.#world.nowMs + raftMsMax
    const lost = (): RaftMessage | undefined => messages.find(({ term }) => this.#raft.has(term))
    while (lost() && this.#world.nowMs < endMs) await this.#world.sleep(pollMs)
    const message = lost()
    if (message) this.#report('a consensus message', textOf(message), 'nothing')
  }

  #report(what: string, sent: string, received: string): void {
    const at = [...sent].findIndex((character, index) => received[index] !== character)
    const around = (text: string): string => text.slice(Math.max(0, at - shownBefore), at + shownAfter)
    this.#world.fail('safety', 'messages-arrive', `${what} arrived as ${around(received)}, not ${around(sent)}`)
  }
}

const shownBefore = 60
const shownAfter = 100

/** Returns what travels of a context. */
function contextOf({ history, requestId, timeoutMs: ms }: CallContext): object { return { history, requestId, ms } }

function errorText(error: unknown): string {
  if (!(error instanceof ReplicaError)) throw error
  return `${error.code} ${error.nothingDone} ${error.message}`
}

function drawError(dice: Dice, values: DrawnValues): ReplicaError {
  return new ReplicaError(dice.pick(replicaErrorCodes), values.word(), { nothingDone: values.flag() })
}

/** Draws a value, and as long as it has no large bytes although it is to, another one. */
function draw(dice: Dice, large: boolean, drawOne: (values: DrawnValues) => unknown): unknown {
  for (let left = drawsMax; ; left--) {
    const values = new DrawnValues(dice, large)
    const value = drawOne(values)
    if (!values.owesLarge || left === 0) return value
  }
}

async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await collected(chunks))
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const middle = Math.floor(bytes.length / 2)
  yield bytes.subarray(0, middle)
  yield bytes.subarray(middle)
}
