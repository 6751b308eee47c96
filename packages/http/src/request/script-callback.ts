/** The function that an answer calls when a page loads it as a script (JSONP, `chttpd/allow_jsonp`). */
import { ApiError } from '@sectional/core'
import type { HttpOptions } from '../settings/http-options.ts'
import type { RequestContext } from './request-context.ts'

const lengthMax = 100
const name = '[A-Za-z_$][A-Za-z0-9_$]*'
/** A name, with members and places of arrays: `app.answers[3]`. Nothing else may come into a script. */
const form = new RegExp(`^${name}(?:\\.${name}|\\[\\d{1,9}\\])*$`)

/**
 * Returns the name of the function; null for an answer that is no script. Pages load scripts only by GET.
 * @throws ApiError `bad_request` when the request names something else than a function
 */
export function scriptCallback(
  { method, query }: Pick<RequestContext, 'method' | 'query'>, { scriptsAllowed }: Pick<HttpOptions, 'scriptsAllowed'>,
): string | null {
  const given = scriptsAllowed && method === 'GET' ? query.get('callback') : undefined
  if (given === undefined || given === '') return null
  if (given.length > lengthMax || !form.test(given)) throw new ApiError('bad_request', 'invalid_callback')
  return given
}
