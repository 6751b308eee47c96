/**
 * The bookmark of a page of found documents: the position of its last document, for the next page to begin behind it.
 * It is the Base64 of `["1",id]` for a position among all documents, and of `["1",id,key]` for one in an index. The key
 * is the JSON of the columns, not the sort key, so that a bookmark outlives a change of the sort keys.
 */
import { parseFiniteJson } from '../json/json-text.ts'

export interface FindPosition {
  readonly id: string
  /** The values of the columns of the row in the index; absent for a position among all documents. */
  readonly key?: readonly unknown[]
}

const version = '1'

/** Returns the bookmark of a page that ends at this position. */
export function encodeBookmark({ id, key }: FindPosition): string {
  return Buffer.from(JSON.stringify([version, id, ...(key === undefined ? [] : [key])])).toString('base64url')
}

/** Returns the position, or null when the text is not a bookmark of this version. */
export function decodeBookmark(text: string): FindPosition | null {
  if (!/^[\w-]+$/.test(text)) return null
  try {
    const parts = parseFiniteJson(Buffer.from(text, 'base64url'))
    if (!Array.isArray(parts) || parts.length < 2 || parts.length > 3) return null
    const [written, id, key] = parts as unknown[]
    if (written !== version || typeof id !== 'string') return null
    if (parts.length === 2) return { id }
    return Array.isArray(key) ? { id, key } : null
  } catch {
    return null
  }
}
