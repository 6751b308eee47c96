/** Mango's JSON indexes that clients define, each with the view in JavaScript that has the same rows. */
import { type JsonObject, queryIndexDefinition, type IndexDefinition } from '@sectional/core'
import type { Dice } from '../world/dice.ts'
import { compareJson } from './json-order.ts'
import type { Json, SwarmView } from './view-functions.ts'

export interface SwarmIndex {
  readonly fields: readonly string[]
  /** In normal form. */
  readonly partialFilter?: JsonObject
  readonly view: SwarmView
}

/** A view of a design document with the language `query`. */
export interface IndexSource {
  readonly map: { readonly fields: Readonly<Record<string, string>>; readonly partial_filter_selector?: JsonObject }
  readonly reduce: '_count'
  readonly options: { readonly def: { readonly fields: readonly string[] } }
}

const firstOfSecondHalf = 'c3'

function key(dice: Dice): Json {
  return [`c${dice.integer(1, 6)}.${dice.integer(1, 12)}`]
}

export const swarmIndexes: readonly SwarmIndex[] = [
  {
    fields: ['v'],
    view: { map: (doc, emit) => { if (doc.v !== undefined) emit([doc.v], null) }, reduce: '_count', key },
  },
  {
    fields: ['_id', 'v'], view: {
      map: (doc, emit) => { if (doc.v !== undefined) emit([doc._id, doc.v], null) }, reduce: '_count',
      key: dice => [`d${dice.integer(0, 12)}`],
    },
  },
  {
    fields: ['_rev'],
    view: { map: (doc, emit) => { emit([doc._rev], null) }, reduce: '_count', key: dice => [`${dice.integer(1, 9)}-`] },
  },
  {
    fields: ['v'], partialFilter: { v: { $gt: firstOfSecondHalf } }, view: {
      map: (doc, emit) => {
        if (doc.v !== undefined && compareJson(doc.v, firstOfSecondHalf) > 0) emit([doc.v], null)
      },
      reduce: '_count', key,
    },
  },
  {
    fields: ['pad'], view: {
      map: (doc, emit) => { if (doc.pad !== undefined) emit([doc.pad], null) }, reduce: '_count', key: () => [''],
    },
  },
  { fields: ['v', 'missing'], view: { map: () => {}, reduce: '_count', key } },
]

/** The indexes of the two fields that `intersectionOf` names. */
export const pairedIndexes: readonly SwarmIndex[] = ['v', 'pad'].map(field =>
  swarmIndexes.find(({ fields, partialFilter }) => fields.join() === field && partialFilter === undefined)!)

export function indexSourceOf({ fields, partialFilter }: SwarmIndex): IndexSource {
  return {
    map: {
      fields: Object.fromEntries(fields.map(name => [name, 'asc'])),
      ...(partialFilter && { partial_filter_selector: partialFilter }),
    },
    reduce: '_count', options: { def: { fields } },
  }
}

/** Returns the index with this source, whatever name a design document gives it. */
export function indexOfSource(source: IndexSource): SwarmIndex {
  const text = JSON.stringify(source)
  const found = swarmIndexes.find(index => JSON.stringify(indexSourceOf(index)) === text)
  if (found === undefined) throw new Error(`the swarm does not define the index ${text}`)
  return found
}

export function indexDefinitionOf({ fields, partialFilter }: SwarmIndex): IndexDefinition {
  return queryIndexDefinition({ fields, partitioned: false, ...(partialFilter && { partialFilter }) })
}
