/**
 * The views that clients define. Each has functions in JavaScript: nodes receive their source texts, and checkers call
 * the functions themselves.
 */
import type { Dice } from '../world/dice.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/**
 * What the map functions and selectors read of a document. `v` names the write that made the revision: a client and a
 * number. `pad` is the empty text in many documents.
 */
export interface MappedBody {
  readonly _id: string
  readonly _rev: string
  readonly v?: string
  readonly pad?: string
}

export type Emit = (key: Json, value: Json) => void

type CustomReduce = (keys: readonly Json[] | null, values: readonly any[], rereduce: boolean) => Json

export interface SwarmView {
  /** A function without references to other code, because nodes get its source text. */
  readonly map: (doc: MappedBody, emit: Emit) => void
  readonly reduce: '_sum' | '_count' | '_stats' | CustomReduce | null
  /** Draws a key that rows of the view may have. */
  readonly key: (dice: Dice) => Json
}

/** The map and reduce functions of a view as design documents have them. */
export interface ViewSource { readonly map: string; readonly reduce?: string }

const clientsMax = 6
const drawnNumbers = 12

/** Emits the revision of each document, so that a query shows what a read of the document would show. */
export const revisionView: SwarmView = {
  map: (doc, emit) => { emit(doc._id, doc._rev) },
  reduce: '_count',
  key: dice => `d${dice.integer(0, drawnNumbers)}`,
}

/** Every function but the first has no rows for some documents. */
export const swarmViews: readonly SwarmView[] = [
  revisionView,
  {
    map: (doc, emit) => { if (doc.v !== undefined) emit(doc.v, null) },
    reduce: '_count',
    key: value,
  },
  {
    map: (doc, emit) => {
      if (doc.v === undefined) return
      const [client, number] = doc.v.split('.') as [string, string]
      emit([client, Number(number) % 3], Number(number))
    },
    reduce: '_sum',
    key: clientKey,
  },
  {
    map: (doc, emit) => {
      if (doc.v === undefined) return
      const [client, number] = doc.v.split('.') as [string, string]
      emit([client, Number(number) % 2], Number(number))
    },
    reduce: '_sum',
    key: clientKey,
  },
  {
    map: (doc, emit) => {
      const number = Number(doc.v?.split('.')[1] ?? 0)
      for (let row = 0; row < number % 4; row++) emit([row, number % 3, doc.v!], number)
    },
    reduce: (_, values, rereduce) => rereduce
      ? {
          rows: values.reduce((sum, { rows }) => sum + rows, 0),
          greatest: values.reduce((max, { greatest }) => Math.max(max, greatest), 0),
        }
      : { rows: values.length, greatest: Math.max(...values) },
    key: dice => dice.chance(0.5) ? [dice.integer(0, 3)] : [dice.integer(0, 3), dice.integer(0, 3)],
  },
  {
    map: (doc, emit) => {
      if (doc.v === undefined) return
      const number = Number(doc.v.split('.')[1])
      emit(null, number)
      emit(null, -number)
      emit(number % 2 === 0, 1)
    },
    reduce: '_stats',
    key: dice => dice.pick<Json>([null, false, true]),
  },
  {
    map: (doc, emit) => {
      const number = Number(doc.v?.split('.')[1] ?? 0)
      emit({ rest: number % 3 }, doc.v ?? null)
      if (number % 5 === 0) throw new Error('this view refuses multiples of five')
      emit(-number, { v: doc.v ?? '' })
    },
    reduce: null,
    key: dice => dice.chance(0.5) ? { rest: dice.integer(0, 2) } : -dice.integer(0, drawnNumbers),
  },
]

/** Returns the source texts of a view's functions. */
export function sourceOf({ map, reduce }: SwarmView): ViewSource {
  return {
    map: `function (doc) { (${map})(doc, emit) }`,
    ...(reduce !== null && { reduce: typeof reduce === 'string' ? reduce : String(reduce) }),
  }
}

/** Returns the view with these source texts, whatever name a design document gives it. */
export function viewOfSource({ map, reduce }: ViewSource): SwarmView {
  const found = swarmViews.find(view => sourceOf(view).map === map && sourceOf(view).reduce === reduce)
  if (found === undefined) throw new Error(`no view of the swarm has the map function ${map}`)
  return found
}

function value(dice: Dice): string {
  return `c${dice.integer(1, clientsMax)}.${dice.integer(1, drawnNumbers)}`
}

function clientKey(dice: Dice): Json {
  const client = `c${dice.integer(1, clientsMax)}`
  return dice.chance(0.5) ? [client] : [client, dice.integer(0, 2)]
}
