import { asBuffer, jsonParts } from '@sectional/core'

/**
 * The members of a JSON object in their order, each as JSON text. Unlike a JavaScript object it keeps the order of
 * names that look like numbers, and all digits of numbers, so that a document can be changed in one place.
 */
export type JsonMembers = ReadonlyMap<string, string>

/**
 * Divides canonical JSON into the members of the object.
 *
 * @returns no members when the JSON is not an object
 * @throws ApiError as `jsonParts`
 */
export function jsonMembers(json: Uint8Array | string): JsonMembers {
  const bytes = typeof json === 'string' ? Buffer.from(json) : json
  if (bytes[0] !== openBraceByte) return new Map()
  // The size of a document limits its members.
  const work = jsonParts(bytes, Infinity)
  let step = work.next()
  while (step.done !== true) step = work.next()
  return new Map((step.value ?? []).map(({ name, text }) => [name, asBuffer(text).toString()]))
}

const openBraceByte = 0x7b

/** Returns the JSON text of an object with these members. */
export function membersText(members: Iterable<readonly [string, string]>): string {
  return `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`
}
