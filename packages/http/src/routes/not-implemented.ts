/** Endpoints of CouchDB that this version does not implement. They answer 501. */
import { ApiError } from '@sectional/core'
import type { Handler, Resource } from '../pipeline/resource.ts'

/** @param what completes the sentence "{what} not available in this version." */
function notImplemented(what: string): Handler {
  return () => { throw new ApiError('not_implemented', `${what} not available in this version.`) }
}

/** Returns a resource whose methods all answer 501. */
export function missingFeature(name: string, access: Resource['access'], allow: string, what: string): Resource {
  const handler = notImplemented(what)
  const methods = allow.split(',').map(method => method.trim()).filter(method => method !== 'HEAD')
  return { name, access, allow, methods: Object.fromEntries(methods.map(method => [method, handler])) }
}
