import { ApiError, isJsonObject } from '@sectional/core'
import { failureText, SandboxError } from '@sectional/runtime'
import type { CallOutcome, Runtime, SandboxFunction } from '@sectional/runtime'
import type { WriteOutcome } from '../contracts/coordinator.ts'
import { selectorTest } from './selector-rules.ts'
import { userDocumentRefusal } from './user-document-rules.ts'
import type { Validator } from './validation-functions.ts'

/** What validators run on. */
export type ValidatorHost = Pick<Runtime, 'clock' | 'machine' | 'sandbox' | 'turns'>

/**
 * Calls all validators with each list of arguments.
 *
 * @returns why a write is refused; undefined for the writes that passed
 * @throws ApiError `service_unavailable` when functions cannot be called now, or not on this machine
 */
export async function runValidators(
  host: ValidatorHost, validators: readonly Validator[], argumentLists: readonly Buffer[],
): Promise<readonly (WriteOutcome | undefined)[]> {
  const refusals = new Array<WriteOutcome | undefined>(argumentLists.length)
  for (const validator of validators) {
    const open = [...argumentLists.keys()].filter(index => refusals[index] === undefined)
    if (open.length === 0) break
    const results = await validate(host, validator, open.map(index => argumentLists[index]!))
    for (const [i, index] of open.entries()) refusals[index] = results[i]
  }
  return refusals
}

async function validate(
  host: ValidatorHost, validator: Validator, argumentLists: readonly Buffer[],
): Promise<readonly (WriteOutcome | undefined)[]> {
  if (validator.kind === 'user-documents') {
    const refusals: (WriteOutcome | undefined)[] = []
    for (const given of argumentLists) refusals.push(refusalByRules(await host.turns.run(userDocumentRefusal(given))))
    return refusals
  }
  if (validator.kind === 'selector') {
    const failureOf = selectorTest(validator.rule, host)
    return host.turns.map(argumentLists, given => {
      const failure = failureOf(given)
      return failure && refusedBy(failure)
    })
  }
  if (validator.kind === 'unsupported') {
    const { designDocument, language } = validator
    const reason = `validate_doc_update of ${designDocument} is in the language ${language}, which is not available.`
    return argumentLists.map(() => refusedBy(new ApiError('not_implemented', reason)))
  }
  return callValidator(host, validator.called, argumentLists)
}

/** Calls the function for each half of the lists when the refusals of all of them are too long for one call. */
async function callValidator(
  host: ValidatorHost, called: SandboxFunction, argumentLists: readonly Buffer[],
): Promise<readonly (WriteOutcome | undefined)[]> {
  try {
    return (await host.sandbox.call(called, argumentLists)).map(refusal)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'too_large' && argumentLists.length > 1) {
      const middle = argumentLists.length >> 1
      const first = await callValidator(host, called, argumentLists.slice(0, middle))
      return [...first, ...await callValidator(host, called, argumentLists.slice(middle))]
    }
    const failure = refusedBy(callFailure(error, called))
    return argumentLists.map(() => failure)
  }
}

function refusalByRules(reason: string | null): WriteOutcome | undefined {
  return reason === null ? undefined : { kind: 'error', error: 'forbidden', reason, status: 403 }
}

/** @throws ApiError when no function can be called, so that the whole request fails before anything is written */
function callFailure({ code, message, position }: SandboxError, { designDocument }: SandboxFunction): ApiError {
  const text = `validate_doc_update of ${designDocument}: ${failureText(message, position)}`
  switch (code) {
    case 'overloaded': case 'unsupported': case 'closed':
      throw new ApiError('service_unavailable', text, { headers: { 'Retry-After': '1' } })
    case 'timeout': return new ApiError('timeout', text)
    case 'compilation': return new ApiError({ status: 500, error: 'compilation_error' }, text)
    default: return new ApiError('unknown_error', text)
  }
}

/** Returns undefined when the function accepted the write. What it returned has no meaning. */
function refusal(outcome: CallOutcome): WriteOutcome | undefined {
  switch (outcome.kind) {
    case 'value': return undefined
    case 'error': return failed(outcome.code ?? 'unknown_error', failureText(outcome.message, outcome))
    case 'thrown': return thrownOutcome(outcome.json)
  }
}

function refusedBy({ error, reason, status }: ApiError): WriteOutcome & { readonly kind: 'error' } {
  return { kind: 'error', error, reason, status, byFunction: true }
}

function failed(error: string, reason: string): WriteOutcome {
  return refusedBy(new ApiError({ status: 500, error }, reason))
}

/**
 * The reason is the message of `{name: message}`, whatever its name is, or everything that was thrown. As in CouchDB,
 * `['error', name, reason]` chooses the name of the error, too.
 */
function thrownOutcome(json: string): WriteOutcome {
  const thrown: unknown = parsed(json)
  if (Array.isArray(thrown) && thrown[0] === 'error' && typeof thrown[1] === 'string') {
    return failed(thrown[1], text(thrown[2] ?? thrown[1]))
  }
  if (!isJsonObject(thrown)) return refusedBy(new ApiError('unknown_error', text(thrown)))
  for (const name of ['forbidden', 'unauthorized'] as const) {
    if (!Object.hasOwn(thrown, name)) continue
    const reason = thrown[name]
    const refused = refusedBy(new ApiError(name, text(reason)))
    return typeof reason === 'string' ? refused : { ...refused, thrownReason: reason }
  }
  const messages = Object.values(thrown)
  return refusedBy(new ApiError('unknown_error', text(messages.length === 1 ? messages[0] : thrown)))
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value) ?? 'undefined'
}

/** A function can replace `JSON` in its isolate, so the text may not be JSON; it is then returned as it is. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
