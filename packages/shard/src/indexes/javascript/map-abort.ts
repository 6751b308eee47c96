import { indexAborted, type ReplicaError } from '@sectional/core'
import { cutText, type Thrown } from '@sectional/runtime'

/** UTF-16 units of the error and of the reason that a function names. */
const errorLengthMax = 100
const reasonLengthMax = 2000

/**
 * Returns the failure of the build that a map function demands, as in CouchDB: by `throw ["fatal", error, reason]` or
 * `throw "fatal_error"`. Returns undefined for all other values, which only concern their document.
 */
export function demandedAbort({ json }: Thrown): ReplicaError | undefined {
  if (json === '"fatal_error"') return indexAborted('map_runtime_error', "function raised 'fatal_error'")
  if (!json.startsWith('["fatal"')) return undefined
  const [, error, reason] = parsedList(json)
  return indexAborted(
    typeof error === 'string' ? cutText(error, errorLengthMax) : 'map_runtime_error',
    cutText(typeof reason === 'string' ? reason : JSON.stringify(reason) ?? 'function raised a fatal error',
      reasonLengthMax),
  )
}

/** A hostile function can change what its context writes, so the text may be anything. */
function parsedList(json: string): readonly unknown[] {
  try {
    return JSON.parse(json) as readonly unknown[]
  } catch {
    return []
  }
}
