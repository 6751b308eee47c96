import type ivm from 'isolated-vm'
import { failureLengthMax } from '../failure-text.ts'
import { environmentScript, mapKind, type RunKind } from '../functions/environment.ts'
import { compileFunction, ScriptSyntaxError, sourceName } from '../functions/function-source.ts'
import type { ScriptContext } from '../functions/function-source.ts'
import { withoutLoneHalves } from '../functions/outcome-text.ts'
import { documentRowsMax, SandboxError } from '../sandbox.ts'
import type { CallKind, CallReply } from './messages.ts'

export interface IsolateLimits { readonly heapMiB: number; readonly resultBytesMax: number }

/** The isolate as it exists. It is made for the first call, and anew after it exceeded its heap. */
interface LiveIsolate {
  readonly isolate: ivm.Isolate
  /** The functions with a context, the one that was called least recently first. */
  readonly functions: Map<number, LiveFunction>
  /** Why the others do not compile. */
  readonly failures: Map<number, SandboxError>
}

/** A compiled function, and `run` of the environment of its context. */
interface LiveFunction { readonly context: ivm.Context; readonly called: ivm.Reference; readonly run: ivm.Reference }

/** What a context takes of the heap: bytes of its own, and bytes for each character of the modules. */
const contextBytes = 256 * 1024
const moduleCharacterBytes = 6
/** The part of the heap that contexts may take. Functions beyond it are compiled again when they are called. */
const contextsPart = 1 / 4

/**
 * The functions of one design document in a child process, with their isolate. Each has a context of its own, so that
 * none sees the globals of another one or what it did to built-in objects. To make a context takes 1 ms, and more for
 * large modules.
 */
export class HostedIsolate {
  readonly #library: typeof ivm
  readonly #limits: IsolateLimits
  readonly #modules: string
  /** Source texts by the functions' ids. */
  readonly #sources = new Map<number, string>()
  /** How the functions that map documents are run, by their ids. */
  readonly #mapKinds = new Map<number, RunKind>()
  readonly #contextsMax: number
  #live: LiveIsolate | undefined

  constructor(library: typeof ivm, limits: IsolateLimits, modules: string) {
    this.#library = library
    this.#limits = limits
    this.#modules = modules
    const bytes = contextBytes + moduleCharacterBytes * modules.length
    this.#contextsMax = Math.max(1, Math.floor(contextsPart * limits.heapMiB * 1024 * 1024 / bytes))
  }

  addFunction(id: number, source: string): void {
    this.#sources.set(id, source)
    this.#mapKinds.set(id, mapKind(source))
  }

  /** Returns the status of the call, and the outcomes as text when the call is done. */
  run(id: number, kind: CallKind, items: string, count: number): { readonly reply: CallReply; readonly text: string } {
    try {
      const live = this.#live ??= this.#create()
      const { called, run } = this.#function(live, id)
      if (kind === 'compile') return { reply: { status: 'done', bytes: 0 }, text: '' }
      const outcomes: unknown = run.applySync(undefined, [
        called.derefInto(), kind === 'map' ? this.#mapKinds.get(id) : kind, items, count, this.#limits.resultBytesMax,
        documentRowsMax,
      ])
      if (typeof outcomes !== 'string') return { reply: { status: 'too_large' }, text: '' }
      const text = withoutLoneHalves(outcomes)
      const bytes = Buffer.byteLength(text)
      if (bytes > this.#limits.resultBytesMax) return { reply: { status: 'too_large' }, text: '' }
      return { reply: { status: 'done', bytes }, text }
    } catch (error) {
      return { reply: this.#failure(error), text: '' }
    }
  }

  dispose(): void {
    if (this.#live?.isolate.isDisposed === false) this.#live.isolate.dispose()
    this.#live = undefined
  }

  #create(): LiveIsolate {
    const isolate = new this.#library.Isolate({
      memoryLimit: this.#limits.heapMiB, onCatastrophicError: () => process.abort(),
    })
    return { isolate, functions: new Map(), failures: new Map() }
  }

  #function({ isolate, functions, failures }: LiveIsolate, id: number): LiveFunction {
    const failure = failures.get(id)
    if (failure !== undefined) throw failure
    let found = functions.get(id)
    if (found === undefined) {
      const [oldest] = functions.values()
      if (oldest !== undefined && functions.size >= this.#contextsMax) {
        functions.delete(functions.keys().next().value!)
        for (const part of [oldest.called, oldest.run, oldest.context]) part.release()
      }
      try {
        found = this.#compile(isolate, id)
      } catch (error) {
        if (error instanceof SandboxError) failures.set(id, error)
        throw error
      }
    }
    functions.delete(id)
    functions.set(id, found)
    return found
  }

  #compile(isolate: ivm.Isolate, id: number): LiveFunction {
    const source = this.#sources.get(id)
    if (source === undefined) throw new Error(`The isolate has no function ${id}`)
    const context = isolate.createContextSync()
    const parts: { release(): void }[] = [context]
    try {
      const script = environmentScript(this.#modules)
      const environment = context.evalSync(script, { reference: true }) as unknown as ivm.Reference
      const run = environment.getSync('run', { reference: true })
      const allowEval = environment.getSync('allowEval', { reference: true })
      parts.unshift(environment, run, allowEval)
      const called = compileFunction(source, scriptContext(isolate, context, allowEval))
      for (const part of [environment, allowEval]) part.release()
      return { context, called, run }
    } catch (error) {
      // References keep the memory of the context until this process collects them.
      if (!isolate.isDisposed) for (const part of parts) part.release()
      throw error
    }
  }

  #failure(error: unknown): CallReply {
    if (this.#live?.isolate.isDisposed) {
      this.#live = undefined
      return { status: 'memory' }
    }
    const message = (error instanceof Error ? error.message : String(error)).slice(0, failureLengthMax)
    if (!(error instanceof SandboxError)) return { status: 'failed', message }
    return { status: 'compilation', message, line: error.position.line, column: error.position.column }
  }
}

function scriptContext(
  isolate: ivm.Isolate, context: ivm.Context, allowEval: ivm.Reference,
): ScriptContext<ivm.Reference> {
  return {
    compile: (code, columnOffset) => {
      const script = compileScript(isolate, code, columnOffset)
      return () => script.runSync(context, { reference: true } as ivm.ScriptRunOptions) as ivm.Reference
    },
    isFunction: value => value.typeof === 'function',
    allowEval: () => { allowEval.applySync(undefined, []) },
  }
}

/** isolated-vm appends the position of a syntax error to its message. */
const positionSuffix = / \[[^\]]*:(\d+):(\d+)\]$/

function compileScript(isolate: ivm.Isolate, code: string, columnOffset: number): ivm.Script {
  try {
    return isolate.compileScriptSync(code, { filename: sourceName, columnOffset })
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const position = positionSuffix.exec(error.message)
    const message = error.message.replace(positionSuffix, '')
    throw new ScriptSyntaxError(message, position && Number(position[1]), position && Number(position[2]))
  }
}
