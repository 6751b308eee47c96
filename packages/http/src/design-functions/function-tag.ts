import { hash } from 'node:crypto'
import type { RequestContext } from '../request/request-context.ts'
import type { DesignFunction } from './design-function.ts'

/**
 * Returns the ETag of a function's response. It depends on the function, on what the function reads, on the URL after
 * rewriting, the Accept header, the user and the security object, but on no other member of `req`, such as the number
 * of documents.
 *
 * @param read JSON values that change with the documents or rows that the function gets
 */
export function functionTag({ revision }: DesignFunction, read: readonly unknown[], request: RequestContext): string {
  const { database, exchange, user } = request
  const state = [
    database.incarnation, exchange.target, revision, read, request.header('accept'), user.name, user.roles,
    database.security,
  ]
  return `"${hash('md5', JSON.stringify(state), 'hex')}"`
}
