/**
 * What functions of design documents find in their context. The source texts of the functions of this file except the
 * first are evaluated inside the context, so these refer to each other and to nothing else. They keep the built-in
 * functions that they use, and use no iterators, because functions of the design document may replace these. Such
 * changes stay in the context, which holds no other function.
 */
import { createEvalGuard } from './code-from-text.ts'
import { sourceName } from './function-source.ts'
import { MediaTypes } from './media-types.ts'
import { onlyReads } from './only-reads.ts'
import { OpenResponse } from './open-response.ts'
import { createResponder } from './responder.ts'

/** A call of a function for one or more items. */
export type ItemsKind = 'map' | 'call' | 'filter'

export type RunKind = ItemsKind | 'mapReader' | 'respond'

/** Returns how a map function with this source is run. */
export function mapKind(source: string): RunKind {
  return onlyReads(source) ? 'mapReader' : 'map'
}

/** What a host calls in a context. Only texts and the function itself cross between the two. */
export interface Environment {
  /**
   * Calls a function once for each item, and returns the outcomes as text (`outcome-text.ts`).
   *
   * @param kind `map`: the function emits rows; `mapReader`: the same, but the function only reads its document, which
   *   is not frozen; `call`: it returns a value; `filter`: it returns whether a document passes; `respond`: it is a
   *   show or list function
   * @param items JSON array of the documents (map), of the argument lists (call), or of the request and then the
   *   documents (filter); or the text that `respondText` returns
   * @param count number of the items
   * @param lengthMax length of the returned text; when it would be longer, null is returned. A row counts for 64
   *   characters more, and a line about a failure for sixteen of its length, because these take long to read.
   * @param rowsMax number of rows of one document. Those of a document that has more are counted and not returned.
   */
  run(called: unknown, kind: RunKind, items: string, count: number, lengthMax: number, rowsMax: number): string | null
  /** Lets the script that is run next read the global `eval` once. After that, and for functions, it throws. */
  allowEval(): void
}

/**
 * Returns the script that prepares a context. Its value is the `Environment`.
 *
 * @param modules JSON text of the object in which `require` looks up modules
 */
export function environmentScript(modules: string): string {
  const parameters = `globalThis, ${JSON.stringify(modules)}, ${JSON.stringify(sourceName)}`
  return `'use strict'; (function () {
    ${createTexts}
    ${createLoader}
    ${createFailures}
    ${createFreezer}
    ${createInvoker}
    ${createEvalGuard}
    ${createGlobals}
    ${MediaTypes}
    ${OpenResponse}
    ${createResponder}
    return (${createEnvironment})(${parameters})
  })()`
}

function createEnvironment(
  scope: Record<string, unknown>, modulesText: string, functionName: string,
): Environment {
  const { parse } = JSON
  const ErrorClass = Error
  const texts = createTexts()
  const modules = parse(modulesText) as Record<string, unknown>
  const codeOf = Symbol('code')
  const load = createLoader(modules, codeOf, texts)
  const failure = createFailures(functionName, codeOf, texts)
  const freeze = createFreezer()
  const invoke = createInvoker()
  const written = createGlobals(scope, texts)
  scope['require'] = (path: string) => load(path, [])
  const allowEval = createEvalGuard(scope)
  const respond = createResponder(scope, (called, argumentList) => invoke(called, modules, argumentList))

  /** @param request the second argument of a filter function */
  function runOne(called: unknown, kind: RunKind, item: unknown, request: unknown): string {
    written.rows = ''
    written.rowCount = 0
    try {
      if (kind === 'filter') return invoke(called, modules, [item, request]) ? '=true\n' : '=false\n'
      if (kind === 'call') return `=${texts.json(invoke(called, modules, item as unknown[]))}\n`
      if (kind === 'map') freeze(item)
      invoke(called, undefined, [item])
      return `${written.rowCount}\n${written.rowCount > written.rowsMax ? '' : written.rows}`
    } catch (error) {
      written.rowCount = 0
      return failure(error)
    }
  }

  function runItems(called: unknown, kind: RunKind, text: string, count: number, lengthMax: number): string | null {
    const items = parse(text) as unknown[]
    const first = kind === 'filter' ? 1 : 0
    const end = first + count
    if (items.length !== end) throw new ErrorClass(`The text has ${items.length} items instead of ${end}.`)
    let outcomes = ''
    let left = lengthMax
    for (let index = first; index < end && left >= written.logged.length; index++) {
      const outcome = runOne(called, kind, items[index], items[0])
      outcomes += outcome
      left -= outcome.length * (outcome[0] === '!' ? 16 : 1)
      if (written.rowCount <= written.rowsMax) left -= 64 * written.rowCount
    }
    return left >= written.logged.length ? outcomes : null
  }

  function runResponse(called: unknown, text: string, lengthMax: number): string | null {
    try {
      const response = respond(called, text, lengthMax)
      return response === null ? null : `=${texts.json(response)}\n`
    } catch (error) {
      return failure(error)
    }
  }

  return {
    allowEval,
    run: (called, kind, items, count, lengthMax, rowsMax) => {
      written.logged = ''
      written.logLines = 0
      written.rowsMax = rowsMax
      const outcomes = kind === 'respond'
        ? runResponse(called, items, lengthMax) : runItems(called, kind, items, count, lengthMax)
      if (outcomes === null || outcomes.length + written.logged.length > lengthMax) return null
      return outcomes + written.logged
    },
  }
}

/** What a function wrote by its globals. */
interface Written {
  /** The emitted rows, two lines for each; at most `rowsMax`. */
  rows: string
  rowCount: number
  rowsMax: number
  /** The logged texts, as lines of the outcomes. */
  logged: string
  /** The number of calls of `log`, also of those that are beyond the limit and had no effect. */
  logLines: number
}

/** Sets the globals that every function finds, except `require`, and returns what they will write. */
function createGlobals(scope: Record<string, unknown>, texts: Texts): Written {
  const { isArray } = Array
  const ObjectClass = Object
  const logLinesMax = 100
  const written: Written = { rows: '', rowCount: 0, rowsMax: 0, logged: '', logLines: 0 }

  for (const name of ['WebAssembly', 'SharedArrayBuffer', 'Atomics']) delete scope[name]
  scope['emit'] = (key: unknown, value: unknown) => {
    const row = written.rowCount < written.rowsMax ? `${texts.json(key)}\n${texts.json(value)}\n` : ''
    written.rows += row
    written.rowCount++
  }
  scope['sum'] = (values: Readonly<Record<string, number>>) => {
    let total = 0
    if (isArray(values)) {
      for (let index = 0; index < values.length; index++) if (index in values) total += values[index] as number
    } else for (const name in ObjectClass(values)) total += values[name] as number
    return total
  }
  scope['isArray'] = isArray
  scope['toJSON'] = JSON.stringify
  scope['log'] = (value: unknown) => {
    if (written.logLines++ >= logLinesMax) return
    written.logged += `#${texts.json(texts.shorten(typeof value === 'string' ? value : texts.json(value)))}\n`
  }
  return written
}

/** Returns the function that calls a function of the design document and refuses promises. */
function createInvoker(): (called: unknown, receiver: unknown, argumentList: readonly unknown[]) => unknown {
  const { apply } = Reflect
  const ErrorClass = Error
  const PromiseClass = Promise
  const { then } = Promise.prototype
  return (called, receiver, argumentList) => {
    const returned: unknown = apply(called as Function, receiver, argumentList)
    if (!(returned instanceof PromiseClass)) return returned
    apply(then, returned, [() => {}, () => {}])
    throw new ErrorClass('The function is asynchronous. Functions of design documents must not be.')
  }
}

/**
 * Returns the function that freezes a JSON value with everything in it. As in CouchDB, a map function cannot change its
 * document: an assignment has no effect, or throws in strict mode.
 */
function createFreezer(): (value: unknown) => void {
  const { freeze, keys } = Object
  const { isArray } = Array
  function freezeMember(value: unknown): void {
    if (typeof value === 'object' && value !== null) freezeAll(value)
  }
  function freezeAll(value: object): void {
    if (isArray(value)) for (let index = 0; index < value.length; index++) freezeMember(value[index])
    else {
      const names = keys(value)
      for (let index = 0; index < names.length; index++) {
        freezeMember((value as Record<string, unknown>)[names[index] as string])
      }
    }
    freeze(value)
  }
  return freezeMember
}

interface Texts {
  /**
   * Returns a value as JSON: `null` for undefined, name and message for an `Error`. The text has no line breaks,
   * because `JSON.stringify` escapes those in strings.
   */
  json(value: unknown): string
  /** Cuts a text that is written to the log or into an error. @param length 1,000 by default */
  shorten(text: string, length?: number): string
}

function createTexts(): Texts {
  const { stringify } = JSON
  const { apply } = Reflect
  const { slice } = String.prototype
  const ErrorClass = Error
  const lengthMax = 1000
  function json(value: unknown): string {
    const isError = value instanceof ErrorClass
    return stringify(isError ? { error: `${value.name}`, message: `${value.message}` } : value) ?? 'null'
  }
  return {
    json,
    shorten: (text, length = lengthMax) => text.length > length ? apply(slice, text, [0, length]) : text,
  }
}

/**
 * Returns the function behind `require`: it loads the module at a path, relative to the names of a folder. Errors of
 * loading have the code of `FunctionFailure` under `codeOf`.
 */
function createLoader(
  modules: Record<string, unknown>, codeOf: symbol, { json }: Texts,
): (path: string, folder: readonly string[]) => unknown {
  const evaluate = eval
  const { apply, set } = Reflect
  const { hasOwn, isFrozen } = Object
  const ErrorClass = Error
  const loaded = { __proto__: null } as unknown as Record<string, { exports: unknown }>

  /** Returns the names of the members that lead to the module. */
  function resolve(path: string, folder: readonly string[]): string[] {
    const steps = `${path}`.split('/')
    const names: string[] = steps[0] === '.' || steps[0] === '..' ? folder.slice() : []
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index] as string
      if (step === '..') names.pop()
      else if (step !== '.' && step !== '') names[names.length] = step
    }
    return names
  }

  function find(names: readonly string[]): unknown {
    let found: unknown = modules
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string
      const isMember = typeof found === 'object' && found !== null && hasOwn(found, name)
      found = isMember ? (found as Record<string, unknown>)[name] : undefined
    }
    return found
  }

  function withCode(error: Error, code: string): Error {
    set(error, codeOf, code)
    return error
  }

  /** A module may throw any value, also one that cannot be described or changed. */
  function loadError(thrown: unknown, id: string): Error {
    const inModule = ` (in module '${id}')`
    try {
      if (!(thrown instanceof ErrorClass)) return new ErrorClass(`Module '${id}' threw ${json(thrown)}`)
      if (isFrozen(thrown)) return new ErrorClass(`${thrown.message}${inModule}`)
      if (thrown instanceof SyntaxError) thrown.message += inModule
      return thrown
    } catch {
      return new ErrorClass(`Module '${id}' threw a value that cannot be described.`)
    }
  }

  return function load(path, folder) {
    const names = resolve(path, folder)
    const id = names.join('/')
    const known = loaded[id]
    if (known !== undefined) return known.exports
    const source = find(names)
    if (typeof source !== 'string') {
      throw withCode(new ErrorClass(`The design document has no module '${id}'.`), 'invalid_require_path')
    }
    const module = { id, exports: {} as unknown }
    loaded[id] = module
    try {
      // The source begins with a line of its own (`createFailures`).
      const run = evaluate(`(function (module, exports, require) {\n${source}\n})\n//# sourceURL=module:${id}`)
      apply(run, module, [module, module.exports, (inner: string) => load(inner, names.slice(0, -1))])
    } catch (error) {
      delete loaded[id]
      throw withCode(loadError(error, id), 'compilation_error')
    }
    return module.exports
  }
}

/** Returns the function that describes a thrown value, as a line of the outcomes. */
function createFailures(
  functionName: string, codeOf: symbol, { json, shorten }: Texts,
): (thrown: unknown) => string {
  const { stringify } = JSON
  const { apply } = Reflect
  const { exec } = RegExp.prototype
  const { slice } = String.prototype
  const ErrorClass = Error
  const thrownLengthMax = 64 * 1024
  const reasonLengthMax = 10_000
  const ObjectClass = Object
  const framePattern = new RegExp(`(${functionName}|module:[^\\s:()]+):(\\d+):(\\d+)`)

  /** The members are texts and numbers, and the object inherits no `toJSON`, so that the result is short. */
  function errorLine(
    message: string, code: unknown, line: number | null, column: number | null, module: string | null,
  ): string {
    const known = code === 'invalid_require_path' || code === 'compilation_error' ? code : undefined
    return stringify({ __proto__: null, kind: 'error', code: known, message, line, column, module })
  }

  function describe(error: Error): string {
    const message = shorten(`${error.name}: ${error.message}`)
    const code = (error as unknown as Record<symbol, unknown>)[codeOf]
    const frame = apply(exec, framePattern, [`${error.stack}`]) as RegExpExecArray | null
    if (frame === null) return errorLine(message, code, null, null, null)
    const module = frame[1] === functionName ? null : shorten(apply(slice, frame[1], ['module:'.length]))
    const line = Number(frame[2]) - (module === null ? 0 : 1)
    return errorLine(message, code, line, Number(frame[3]), module)
  }

  /** Returns the JSON of a refusal with the beginning of its reason, or of the reason's JSON, if the value is one. */
  function shortRefusal(thrown: unknown): string | undefined {
    const refusal = ObjectClass(thrown) as Record<string, unknown>
    const name = refusal['forbidden'] === undefined ? 'unauthorized' : 'forbidden'
    const reason = refusal[name]
    if (reason === undefined) return undefined
    const text = typeof reason === 'string' ? reason : json(reason)
    return json({ __proto__: null, [name]: shorten(text, reasonLengthMax) })
  }

  function describeValue(thrown: unknown): string {
    const text = json(thrown)
    const short = text.length > thrownLengthMax ? shortRefusal(thrown) : text
    if (short !== undefined) return stringify({ __proto__: null, kind: 'thrown', json: short })
    const message = `The function threw a value of ${text.length} characters; the limit is ${thrownLengthMax}`
    return errorLine(message, undefined, null, null, null)
  }

  return thrown => {
    try {
      return `!${thrown instanceof ErrorClass ? describe(thrown) : describeValue(thrown)}\n`
    } catch {
      return '!{}\n'
    }
  }
}
