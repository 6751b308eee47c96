import type { JsonText } from '../sandbox.ts'

const open = Buffer.from('[')
const comma = Buffer.from(',')
const close = Buffer.from(']')

/** Returns a JSON array of the items, as UTF-8. */
export function itemsText(items: readonly JsonText[]): Buffer {
  if (items.every(item => typeof item === 'string')) return Buffer.from(`[${items.join(',')}]`)
  const parts: Uint8Array[] = [open]
  for (const item of items) {
    if (parts.length > 1) parts.push(comma)
    parts.push(typeof item === 'string' ? Buffer.from(item) : item)
  }
  parts.push(close)
  return Buffer.concat(parts)
}
