/** The documents that every measurement writes, so that Sectional and the bare programs are given the same bytes. */
import { randomBytes, randomUUID } from 'node:crypto'

/** `random`: as clients that make UUIDs; `ascending`: as imports of sorted data, which LevelDB likes best. */
export type IdOrder = 'random' | 'ascending'

/** Members beside the text. */
const frameBytes = 60
/** Text of no pattern: a document shrinks little when it is compressed, as real ones do not shrink to nothing. */
const text = randomBytes(64 * 1024).toString('base64')

export function documentId(tag: string, number: number, order: IdOrder): string {
  return order === 'random' ? randomUUID() : `${tag}-${String(number).padStart(9, '0')}`
}

/** JSON of a document without its id, about `bytes` long. */
export function documentBody(number: number, bytes: number): string {
  const length = Math.max(0, bytes - frameBytes)
  const start = (number * 61) % (text.length - length)
  return `{"number":${number},"name":"document ${number}","text":"${text.slice(start, start + length)}"}`
}
