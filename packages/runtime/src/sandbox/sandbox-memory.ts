import { createContext, runInContext, Script } from 'node:vm'
import { environmentScript, mapKind, type Environment, type ItemsKind, type RunKind } from './functions/environment.ts'
import { compileFunction, ScriptSyntaxError, sourceName } from './functions/function-source.ts'
import { itemsText } from './functions/items-text.ts'
import { readCallOutcomes, readMapOutcomes, withoutLoneHalves } from './functions/outcome-text.ts'
import { respondText } from './functions/respond-text.ts'
import { defaultSandboxLimits, documentRowsMax, SandboxError } from './sandbox.ts'
import type { CallOutcome, JsonText, MapOutcome, RespondArguments, Sandbox, SandboxFunction } from './sandbox.ts'

/** The compiled functions of one sandbox; beyond this number the oldest one is dropped. */
const functionsMax = 64

/** A compiled function in a context of its own. */
interface CompiledFunction { readonly environment: Environment; readonly value: unknown }

/**
 * Runs functions in this process, synchronously and without limits of time and memory. A context of `node:vm` is no
 * boundary, so that only functions that are trusted may run here: those of tests and of the simulator.
 */
export class MemorySandbox implements Sandbox {
  readonly #functions = new Map<string, CompiledFunction>()

  async compile(called: SandboxFunction): Promise<void> {
    this.#compiled(called)
  }

  async map(
    called: SandboxFunction, documents: readonly JsonText[], onLog = (_line: string): void => {},
  ): Promise<readonly MapOutcome[]> {
    const { outcomes, logged } = readMapOutcomes(this.#runItems(called, 'map', documents), documents.length)
    for (const line of logged) onLog(line)
    return outcomes
  }

  async call(called: SandboxFunction, argumentLists: readonly JsonText[]): Promise<readonly CallOutcome[]> {
    return readCallOutcomes(this.#runItems(called, 'call', argumentLists), argumentLists.length).outcomes
  }

  async filter(
    called: SandboxFunction, request: JsonText, documents: readonly JsonText[],
  ): Promise<readonly CallOutcome[]> {
    return readCallOutcomes(this.#runItems(called, 'filter', documents, [request]), documents.length).outcomes
  }

  async respond(called: SandboxFunction, given: RespondArguments): Promise<CallOutcome> {
    return readCallOutcomes(this.#run(called, 'respond', respondText(given), 1), 1).outcomes[0] as CallOutcome
  }

  /** @param shared values for all items, which precede them */
  #runItems(
    called: SandboxFunction, kind: ItemsKind, items: readonly JsonText[], shared: readonly JsonText[] = [],
  ): string {
    if (items.length > defaultSandboxLimits.callItemsMax) {
      throw new SandboxError('too_large', 'The call has too many items')
    }
    return this.#run(called, kind, itemsText([...shared, ...items]).toString(), items.length)
  }

  #run(called: SandboxFunction, kind: RunKind, items: string, count: number): string {
    const { environment, value } = this.#compiled(called)
    const run = kind === 'map' ? mapKind(called.source) : kind
    const { resultBytesMax } = defaultSandboxLimits
    const outcomes = environment.run(value, run, items, count, resultBytesMax, documentRowsMax)
    const text = outcomes === null ? undefined : withoutLoneHalves(outcomes)
    if (text !== undefined && Buffer.byteLength(text) <= resultBytesMax) return text
    throw new SandboxError('too_large', `The results have more than ${resultBytesMax} bytes`)
  }

  #compiled({ database, designDocument, modules, source }: SandboxFunction): CompiledFunction {
    const name = JSON.stringify([database, designDocument, modules, source])
    let compiled = this.#functions.get(name)
    if (compiled === undefined) {
      compiled = compile(modules, source)
      const [oldest] = this.#functions.keys()
      if (this.#functions.size >= functionsMax && oldest !== undefined) this.#functions.delete(oldest)
      this.#functions.set(name, compiled)
    }
    return compiled
  }
}

function compile(modules: string, source: string): CompiledFunction {
  const context = createContext({})
  const environment = runInContext(environmentScript(modules), context) as Environment
  const value = compileFunction<unknown>(source, {
    compile: (code, columnOffset) => {
      const script = compileScript(code, columnOffset)
      return () => script.runInContext(context)
    },
    isFunction: made => typeof made === 'function',
    allowEval: () => environment.allowEval(),
  })
  return { environment, value }
}

function compileScript(code: string, columnOffset: number): Script {
  try {
    return new Script(code, { filename: sourceName, columnOffset })
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // The stack begins with the file and line, the text of the line, and a mark below the column.
    const [place = '', , mark = ''] = (error.stack ?? '').split('\n')
    const line = Number(/:(\d+)$/.exec(place)?.[1] ?? NaN)
    const column = mark.indexOf('^') + 1 + (line === 1 ? columnOffset : 0)
    throw Number.isNaN(line)
      ? new ScriptSyntaxError(error.message, null, null) : new ScriptSyntaxError(error.message, line, column)
  }
}
