/** The documents that every measurement writes, so that Sectional and the bare programs receive the same bytes. */
import { randomBytes, randomUUID } from 'node:crypto'

/**
 * `random`: ids like client-generated UUIDs. `ascending`: ids like imports of sorted data, for which LevelDB is
 * fastest.
 */
export type IdOrder = 'random' | 'ascending'

/** Bytes of the members in addition to the text. */
const frameBytes = 60
/** Random text, because real documents do not compress to almost nothing either. */
const text = randomBytes(64 * 1024).toString('base64')

export function documentId(tag: string, number: number, order: IdOrder): string {
  return order === 'random' ? randomUUID() : `${tag}-${String(number).padStart(9, '0')}`
}

/** Returns the JSON of a document without its id, about `bytes` long. */
export function documentBody(number: number, bytes: number): string {
  const length = Math.max(0, bytes - frameBytes)
  const start = (number * 61) % (text.length - length)
  return `{"number":${number},"name":"document ${number}","text":"${text.slice(start, start + length)}"}`
}
