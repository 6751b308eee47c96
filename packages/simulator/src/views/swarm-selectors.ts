/** Selectors of the swarm's documents, and the same conditions as functions. */
import { compareUtf8, type JsonObject } from '@sectional/core'
import type { Dice } from '../world/dice.ts'
import { compareJson } from './json-order.ts'
import type { MappedBody } from './view-functions.ts'

export interface SwarmSelector {
  readonly selector: JsonObject
  readonly matches: (document: MappedBody) => boolean
}

/**
 * Returns a selector of two fields. If both have indexes and the answer is sorted by `pad`, the rows of one are looked
 * up in the other.
 */
export function intersectionOf(value: string): SwarmSelector {
  return {
    selector: { v: value, pad: { $gte: '' } }, matches: ({ v, pad }) => v === value && pad !== undefined,
  }
}

/** Draws a selector. Some of them are served by the indexes of `swarm-indexes.ts`, and some by none. */
export function drawSelector(dice: Dice): SwarmSelector {
  const value = (): string => `c${dice.integer(1, 6)}.${dice.integer(1, 12)}`
  const has = (test: (v: string) => boolean) => ({ v }: MappedBody): boolean => v !== undefined && test(v)
  const kinds: readonly (() => SwarmSelector)[] = [
    () => {
      const [low, high] = [value(), value()].toSorted(compareJson) as [string, string]
      return {
        selector: { v: { $gte: low, $lt: high } },
        matches: has(v => compareJson(v, low) >= 0 && compareJson(v, high) < 0),
      }
    },
    () => {
      const prefix = `c${dice.integer(1, 6)}.`
      return { selector: { v: { $beginsWith: prefix } }, matches: has(v => v.startsWith(prefix)) }
    },
    () => {
      const values = [value(), value(), value()]
      return { selector: { v: { $in: values } }, matches: has(v => values.includes(v)) }
    },
    () => {
      const id = `d${dice.integer(0, 12)}`
      return {
        selector: { _id: { $gt: id }, v: { $exists: true } },
        matches: document => compareUtf8(document._id, id) > 0 && document.v !== undefined,
      }
    },
    () => {
      const [one, id] = [value(), `d${dice.integer(0, 12)}`]
      return {
        selector: { $or: [{ v: one }, { _id: id }, { v: { $exists: false } }] },
        matches: document => document.v === one || document._id === id || document.v === undefined,
      }
    },
    () => intersectionOf(value()),
    () => ({ selector: { v: { $regex: '\\.1$' } }, matches: has(v => v.endsWith('.1')) }),
  ]
  return dice.pick(kinds)()
}
