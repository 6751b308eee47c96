import { SandboxError } from '../sandbox.ts'

/** The name of a function's script in stack traces. */
export const sourceName = 'design-function.js'

/** A context in which a function of a design document is compiled. `Value` is what the host has of a value in it. */
export interface ScriptContext<Value> {
  /**
   * Compiles a script without running it.
   *
   * @param columnOffset added to the columns of the first line
   * @returns runs the script, and returns its last value
   * @throws ScriptSyntaxError
   */
  compile(code: string, columnOffset: number): () => Value
  isFunction(value: Value): boolean
  /** Lets the script that is run next read the global `eval` once (`Environment.allowEval`). */
  allowEval(): void
}

/** A syntax error with its position in the script, from 1. The position is null when the engine gives none. */
export class ScriptSyntaxError extends Error {
  readonly line: number | null
  readonly column: number | null

  constructor(message: string, line: number | null, column: number | null) {
    super(message)
    this.line = line
    this.column = column
  }
}

/** How many anonymous function statements a source may have. */
const anonymousMax = 9
const anonymousStatement = /Function statements require a function name/

/**
 * Compiles the source of a function in any of the forms that `Sandbox` names.
 *
 * A source that is an expression, apart from semicolons at its end, is evaluated as one: `function f(doc) {};` is a
 * function as an expression, and has no value as a script. Any other source is a script, which runs within a function.
 * `function (doc) {}` is no valid statement of a script, although design documents contain it behind other statements:
 * it is given a name.
 *
 * @throws SandboxError `compilation`
 */
export function compileFunction<Value>(source: string, context: ScriptContext<Value>): Value {
  let value: Value
  try {
    value = compileForms(source, context)()
  } catch (error) {
    if (error instanceof ScriptSyntaxError) {
      throw new SandboxError('compilation', error.message, { ...positionInSource(error, source), module: null })
    }
    if (error instanceof SandboxError) throw error
    throw new SandboxError('compilation', error instanceof Error ? `${error.name}: ${error.message}` : String(error))
  }
  if (!context.isFunction(value)) throw new SandboxError('compilation', 'The source does not evaluate to a function.')
  return value
}

export function withoutTrailingSemicolons(source: string): string {
  let end = source.length
  while (end > 0 && /[\s;]/.test(source[end - 1]!)) end--
  return source.slice(0, end)
}

/** Returns the position of an error. An error behind the source, in what was appended to it, is at the source's end. */
function positionInSource(
  { line, column }: ScriptSyntaxError, source: string,
): { readonly line: number | null; readonly column: number | null } {
  const lines = source.split('\n')
  if (line === null || line <= lines.length) return { line, column }
  return { line: lines.length, column: lines.at(-1)!.length + 1 }
}

function compileForms<Value>(source: string, context: ScriptContext<Value>): () => Value {
  try {
    return context.compile(`(${withoutTrailingSemicolons(source)}\n)`, -1)
  } catch (error) {
    if (!(error instanceof ScriptSyntaxError)) throw error
    try {
      const code = JSON.stringify(`${nameStatements(source, context)}\n//# sourceURL=${sourceName}`)
      const run = context.compile(`(function () { return eval(${code}) })()`, 0)
      return () => {
        context.allowEval()
        return run()
      }
    } catch (scriptError) {
      throw scriptError instanceof ScriptSyntaxError ? later(error, scriptError) : scriptError
    }
  }
}

/** Returns the script with names for its anonymous function statements; the last one is the value of the script. */
function nameStatements<Value>(source: string, context: ScriptContext<Value>): string {
  let code = source
  let last = ''
  const named: ScriptSyntaxError[] = []
  for (;;) {
    try {
      context.compile(code + last, 0)
      return code + last
    } catch (error) {
      if (!(error instanceof ScriptSyntaxError)) throw error
      const at = anonymousStatement.test(error.message) ? nameOffset(code, error) : undefined
      if (at === undefined || named.length === anonymousMax) throw inSource(error, named)
      const name = ` anonymous${named.length}`
      code = code.slice(0, at) + name + code.slice(at)
      last = `\n;${name}`
      named.push(error)
    }
  }
}

/** Returns the error with the column that it has without the names that were inserted before it on its line. */
function inSource(error: ScriptSyntaxError, named: readonly ScriptSyntaxError[]): ScriptSyntaxError {
  if (error.column === null) return error
  const inserted = named.filter(({ line, column }) => line === error.line && (column ?? 0) < (error.column ?? 0))
  return new ScriptSyntaxError(error.message, error.line, error.column - inserted.length * ' anonymous0'.length)
}

/** Returns where the name of a function statement belongs: behind its keyword, at which the error points. */
function nameOffset(code: string, { line, column }: ScriptSyntaxError): number | undefined {
  if (line === null || column === null) return undefined
  const before = code.split('\n').slice(0, line - 1).reduce((total, text) => total + text.length + 1, 0)
  const keyword = /function\s*\*?/y
  keyword.lastIndex = before + column - 1
  return keyword.test(code) ? keyword.lastIndex : undefined
}

/** Of the errors of two forms, the one that lies further behind names the cause: the other form was not meant. */
function later(first: ScriptSyntaxError, second: ScriptSyntaxError): ScriptSyntaxError {
  const [firstLine, secondLine] = [first.line ?? 0, second.line ?? 0]
  if (firstLine !== secondLine) return firstLine > secondLine ? first : second
  return (second.column ?? 0) > (first.column ?? 0) && !anonymousStatement.test(second.message) ? second : first
}
