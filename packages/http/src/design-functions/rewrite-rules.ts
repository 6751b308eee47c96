/** The rules in the member `rewrites` of a design document, which map paths to other paths. */
import { ApiError, isJsonObject, parseFiniteJson, type JsonObject } from '@sectional/core'
import { FunctionError } from '../messages/function-error.ts'
import type { RequestContext } from '../request/request-context.ts'

/** Where a request goes: segments relative to the design document, and the parameters of the query. */
export interface RewrittenPath {
  readonly segments: readonly string[]
  readonly query: ReadonlyMap<string, string>
}

/** Values by the names of variables and parameters. Those of keys are JSON values, most others texts. */
type Bindings = ReadonlyMap<string, unknown>

/** Parameters whose values are JSON texts in a query. */
const keyParameters: ReadonlySet<string> = new Set(['key', 'keys', 'startkey', 'start_key', 'endkey', 'end_key'])
/** Number of `..` in the target of a rule while `chttpd/secure_rewrites` is set: the parent of the design document. */
const parentsMax = 2
/** Each request reads the rules up to the one that matches. */
const rulesMax = 10_000

/**
 * Applies the first rule that matches.
 *
 * @param path segments behind `_rewrite`
 * @param isSecure whether rules must not lead out of the database
 * @returns null when no rule matches
 * @throws FunctionError `rewrite_error` for a rule that is malformed, and for too many; `insecure_rewrite_rule`
 */
export function applyRules(
  rules: readonly unknown[], path: readonly string[], request: RequestContext, isSecure: boolean,
): RewrittenPath | null {
  // Only rules may lead upwards. A segment of the client that did would avoid what proxies check.
  if (isSecure && path.some(segment => segment === '..' || segment === '.')) return null
  if (rules.length > rulesMax) throw malformed(`There are ${rules.length} rules, the limit is ${rulesMax}`)
  for (const rule of rules) {
    if (!isJsonObject(rule)) throw malformed('A rule is an object')
    const variables = matches(rule, request.method) ? bindPath(segmentsOf(rule['from'] ?? '*', 'from'), path) : null
    if (variables !== null) return rewritten(rule, variables, request, isSecure)
  }
  return null
}

function matches({ method }: JsonObject, asked: string): boolean {
  return method === undefined || method === '*' || method === asked
}

function segmentsOf(path: unknown, member: string): readonly string[] {
  if (typeof path !== 'string') throw malformed(`The member '${member}' of a rule is a text`)
  return path.split('/').filter(segment => segment !== '')
}

/** Matches a path against the pattern of a rule. `:name` and `*` take one segment, a last `*` all that remain. */
function bindPath(
  pattern: readonly string[], path: readonly string[],
): { readonly bindings: Bindings; readonly rest: readonly string[] } | null {
  const bindings = new Map<string, unknown>()
  for (const [index, token] of pattern.entries()) {
    const segment = path[index]
    const takesRest = token === '*' && index === pattern.length - 1
    if (segment === undefined) return takesRest ? { bindings, rest: [] } : null
    if (token === '*') bindings.set('*', segment)
    else if (token.startsWith(':')) bindings.set(token.slice(1), segment)
    else if (token !== segment) return null
    if (takesRest) return { bindings, rest: path.slice(index) }
  }
  return path.length === pattern.length ? { bindings, rest: [] } : null
}

function rewritten(
  { to, query = {}, formats = {} }: JsonObject, { bindings, rest }: NonNullable<ReturnType<typeof bindPath>>,
  request: RequestContext, isSecure: boolean,
): RewrittenPath {
  const target = segmentsOf(to, 'to')
  if (!isJsonObject(query)) throw malformed("The member 'query' of a rule is an object")
  if (!isJsonObject(formats)) throw malformed("The member 'formats' of a rule is an object")
  if (isSecure && target.filter(segment => segment === '..').length > parentsMax) throw insecureRule()
  const asked = [...request.query.entries()].map(([name, value]): [string, unknown] => [name, decoded(name, value)])
  // Parameters of the request and variables of the path are parameters of the new query, unless the rule names them.
  const all = new Map([...asked, ...bindings])
  const named = Object.entries(query)
    .map(([name, value]): [string, unknown] => [name, substituted(value, all, formats)])
  const final = new Map([...all, ...named])
  const fixed = target.includes('*') ? target.slice(0, target.indexOf('*')) : target
  const segments = fixed.map(segment => pathSegment(segment, final))
  if (fixed !== target) segments.push(...rest)
  final.delete('*')
  return { segments, query: new Map([...final].map(([name, value]) => [name, encoded(name, value)])) }
}

/** Replaces `:name` and `*` by the value of the variable or parameter, in the format of that name; also in an array. */
function substituted(value: unknown, bindings: Bindings, formats: JsonObject): unknown {
  if (Array.isArray(value)) return value.map(each => substituted(each, bindings, formats))
  if (typeof value !== 'string') return value
  const name = value.startsWith(':') ? value.slice(1) : value === '*' ? value : null
  return name !== null && bindings.has(name) ? formatted(bindings.get(name), formats[name]) : value
}

/** Returns the number or the boolean that a text stands for; the text itself when it stands for none. */
function formatted(value: unknown, format: unknown): unknown {
  if (typeof value !== 'string') return value
  if (format === 'int' && /^[+-]?\d+$/.test(value) && Number.isFinite(Number(value))) return Number(value)
  const boolean = value.toLowerCase()
  return format === 'bool' && (boolean === 'true' || boolean === 'false') ? boolean === 'true' : value
}

function pathSegment(segment: string, bindings: Bindings): string {
  if (!segment.startsWith(':')) return segment
  const value = bindings.get(segment.slice(1))
  return typeof value === 'string' ? value : JSON.stringify(value) ?? 'undefined'
}

function decoded(name: string, text: string): unknown {
  return keyParameters.has(name) ? parseFiniteJson(text) : text
}

function encoded(name: string, value: unknown): string {
  return typeof value === 'string' && !keyParameters.has(name) ? value : JSON.stringify(value)
}

function malformed(reason: string): FunctionError {
  return new FunctionError(500, 'rewrite_error', `${reason}.`)
}

export function insecureRule(): ApiError {
  return new FunctionError(500, 'insecure_rewrite_rule', 'too many ../.. segments')
}
