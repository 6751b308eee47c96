/** Calls a function that handles requests, and converts its failures to the errors that the client gets. */
import { ApiError, isJsonObject, parseJson } from '@sectional/core'
import {
  failureText, SandboxError, type CallOutcome, type SandboxFunction, type Thrown,
} from '@sectional/runtime'
import { FunctionError } from '../messages/function-error.ts'

/** Status codes of errors that functions may name in `throw ['error', name, reason]`. All others get 500. */
const namedErrors: ReadonlyMap<string, number> = new Map([
  ['bad_request', 400], ['unauthorized', 401], ['forbidden', 403], ['not_found', 404], ['method_not_allowed', 405],
  ['not_acceptable', 406], ['conflict', 409], ['too_large', 413],
])

/**
 * Waits for a call of the sandbox.
 *
 * @param called the function, for the texts of errors
 * @throws FunctionError `compilation_error`, `timeout`, or `render_error` when the call exceeded another limit
 * @throws ApiError `service_unavailable` when this node cannot run the function now, `not_implemented` when it can run
 * none at all
 */
export async function outcomeOf<Outcome>(called: SandboxFunction, call: Promise<Outcome>): Promise<Outcome> {
  try {
    return await call
  } catch (error) {
    throw error instanceof SandboxError ? callError(error, called) : error
  }
}

/** Returns what the client is told when a call of the sandbox failed as a whole. */
export function callError(error: SandboxError, { designDocument }: SandboxFunction): ApiError {
  const text = failureText(error.message, error.position)
  switch (error.code) {
    case 'compilation':
      return new FunctionError(500, 'compilation_error', `A function of ${designDocument} does not compile: ${text}`)
    case 'timeout':
      return new FunctionError(500, 'timeout', `A function of ${designDocument} took too long: ${text}`)
    case 'unsupported':
      return new ApiError('not_implemented', text, { cause: error })
    case 'overloaded':
    case 'closed':
      return new ApiError('service_unavailable', text, { headers: { 'Retry-After': '1' }, cause: error })
    default:
      return new FunctionError(500, 'render_error', `A function of ${designDocument} was ended: ${text}`)
  }
}

/**
 * Returns the JSON text of what the function returned.
 *
 * @throws FunctionError when it threw: `throw ['error', name, reason]` and `throw {error: name, reason: reason}` give
 * `name`, with the status that it has in CouchDB's API; `throw {forbidden: reason}` and `throw {unauthorized: reason}`
 * give 403 and 401; errors of `require` give 500 with their code, and everything else with the name `raisedName`
 */
export function valueOf(outcome: CallOutcome, raisedName: RaisedName = 'render_error'): string {
  switch (outcome.kind) {
    case 'value': return outcome.json
    case 'thrown': throw thrownError(outcome, raisedName)
    case 'error': {
      const text = failureText(outcome.message, outcome)
      throw outcome.code === undefined ? raised(text, raisedName) : new FunctionError(500, outcome.code, text)
    }
  }
}

/** The name of an error for which the function chose no name. */
type RaisedName = 'render_error' | 'rewrite_error'

function thrownError({ json }: Thrown, raisedName: RaisedName): FunctionError {
  const [name, reason] = namedError(parsed(json)) ?? []
  if (name === undefined) return raised(json, raisedName)
  const text = typeof reason === 'string' ? reason : JSON.stringify(reason)
  return new FunctionError(namedErrors.get(name) ?? 500, name, text)
}

/** Returns name and reason of the error that a thrown value stands for. */
function namedError(value: unknown): readonly [name: string, reason: unknown] | undefined {
  if (Array.isArray(value)) {
    const [kind, name, reason] = value as readonly unknown[]
    const isError = (kind === 'error' || kind === 'fatal') && typeof name === 'string'
    return isError ? [name, reason ?? name] : undefined
  }
  if (!isJsonObject(value)) return undefined
  const { error, reason, forbidden, unauthorized } = value
  if (typeof error === 'string' && reason !== undefined) return [error, reason]
  if (forbidden !== undefined) return ['forbidden', forbidden]
  return unauthorized === undefined ? undefined : ['unauthorized', unauthorized]
}

/** A hostile function can change the text that its isolate gives for a value. */
function parsed(json: string): unknown {
  try {
    return parseJson(json)
  } catch {
    return undefined
  }
}

function raised(text: string, name: RaisedName): FunctionError {
  return new FunctionError(500, name, `function raised error: ${text}`)
}
