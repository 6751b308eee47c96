/** The JSON of users' documents, whose numbers are written again exactly as they were. */
import { hashMembers, type HashMembers } from '../authentication/password-hasher.ts'

const ofHash: ReadonlySet<string> = new Set(hashMembers)

/** Returns the text of a document with another hash. */
export function withHash(document: Readonly<Record<string, unknown>>, hash: HashMembers): Uint8Array {
  const others = Object.fromEntries(Object.entries(document).filter(([name]) => !ofHash.has(name)))
  return Buffer.from(JSON.stringify({ ...hash, ...others }))
}

/** Parses JSON so that the numbers are written again exactly as they were. */
export function parseExact(body: Uint8Array): unknown {
  const exact = JSON as unknown as ExactJson
  return exact.parse(Buffer.from(body).toString('utf8'), (_key, value, { source }) => (
    typeof value === 'number' && source !== undefined ? exact.rawJSON(source) : value))
}

/** Functions of JavaScript that the type definitions do not have yet. */
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
  rawJSON(text: string): unknown
}
