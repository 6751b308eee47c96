import type { JsonText } from '../sandbox.ts'

const openByte = 0x5b
const commaByte = 0x2c
const closeByte = 0x5d

/** Returns a JSON array of the items, as UTF-8. */
export function itemsText(items: readonly JsonText[]): Buffer {
  if (items.every(item => typeof item === 'string')) return Buffer.from(`[${items.join(',')}]`)
  const parts = items.map(item => typeof item === 'string' ? Buffer.from(item) : item)
  // Each item but the last is followed by a comma. `Buffer.concat` with the commas as parts takes twice as long.
  const text = Buffer.allocUnsafe(parts.reduce((sum, { length }) => sum + length + 1, 1))
  text[0] = openByte
  let at = 1
  for (const part of parts) {
    text.set(part, at)
    at += part.length
    text[at++] = commaByte
  }
  text[text.length - 1] = closeByte
  return text
}
