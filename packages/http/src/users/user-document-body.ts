/** The JSON of users' documents, which is changed as bytes: numbers stay exactly as they were written. */
import { NamedMembers } from '@sectional/core'
import { hashMembers, type HashMembers } from '../authentication/password-hasher.ts'

const replacedByHash = new NamedMembers(['password', ...hashMembers])

/** Returns the text of a document with another hash, and without a password. */
export function* withHash(body: Uint8Array, hash: HashMembers): Generator<void, Uint8Array> {
  return withMembers(hash, yield* replacedByHash.without(body))
}

/** Returns the text of an object with members, of which there is at least one, and then those of the body. */
export function withMembers(members: object, body: Uint8Array): Buffer {
  const head = JSON.stringify(members).slice(0, -1)
  const isEmpty = body.length === emptyObject.length
  return Buffer.concat([Buffer.from(isEmpty ? head : `${head},`), body.subarray(1)])
}

const emptyObject = '{}'
