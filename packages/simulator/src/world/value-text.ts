import { asBuffer } from '@sectional/core'

/** Returns the value as JSON, with bytes as text and members in the order of their names. */
export function textOf(value: unknown): string {
  return JSON.stringify(plain(value))
}

/** Converts bytes before `JSON.stringify` calls `toJSON` of a Buffer, which lists them as numbers. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Uint8Array) return asBuffer(value).toString()
  const members = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
  return Object.fromEntries(members.map(([name, member]) => [name, plain(member)]))
}
