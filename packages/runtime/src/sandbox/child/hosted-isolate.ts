import type ivm from 'isolated-vm'
import { failureLengthMax } from '../failure-text.ts'
import { environmentScript, mapKind, type RunKind } from '../functions/environment.ts'
import { compileFunction, ScriptSyntaxError, sourceName } from '../functions/function-source.ts'
import type { ScriptContext } from '../functions/function-source.ts'
import { SandboxError } from '../sandbox.ts'
import type { CallKind, CallReply } from './messages.ts'

export interface IsolateLimits { readonly heapMiB: number; readonly resultLengthMax: number }

/** The isolate as it exists. It is made for the first call, and anew after it exceeded its heap. */
interface LiveIsolate {
  readonly isolate: ivm.Isolate
  readonly context: ivm.Context
  readonly run: ivm.Reference
  readonly allowEval: ivm.Reference
  readonly functions: Map<number, ivm.Reference>
}

/** The functions of one design document in a child process, with their isolate. */
export class HostedIsolate {
  readonly #library: typeof ivm
  readonly #limits: IsolateLimits
  readonly #modules: string
  /** Source texts by the functions' ids. */
  readonly #sources = new Map<number, string>()
  /** How the functions that map documents are run, by their ids. */
  readonly #mapKinds = new Map<number, RunKind>()
  #live: LiveIsolate | undefined

  constructor(library: typeof ivm, limits: IsolateLimits, modules: string) {
    this.#library = library
    this.#limits = limits
    this.#modules = modules
  }

  addFunction(id: number, source: string): void {
    this.#sources.set(id, source)
    this.#mapKinds.set(id, mapKind(source))
  }

  /** Returns the status of the call, and the outcomes as text when the call is done. */
  run(id: number, kind: CallKind, items: string, count: number): { readonly reply: CallReply; readonly text: string } {
    try {
      const live = this.#live ??= this.#create()
      const called = this.#compile(live, id)
      if (kind === 'compile') return { reply: { status: 'done', bytes: 0 }, text: '' }
      const outcomes: unknown = live.run.applySync(undefined, [
        called.derefInto(), kind === 'map' ? this.#mapKinds.get(id) : kind, items, count, this.#limits.resultLengthMax,
      ])
      if (typeof outcomes !== 'string') return { reply: { status: 'too_large' }, text: '' }
      return { reply: { status: 'done', bytes: Buffer.byteLength(outcomes) }, text: outcomes }
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
    const context = isolate.createContextSync()
    const script = environmentScript(this.#modules)
    const environment = context.evalSync(script, { reference: true }) as unknown as ivm.Reference
    const run = environment.getSync('run', { reference: true })
    const allowEval = environment.getSync('allowEval', { reference: true })
    return { isolate, context, run, allowEval, functions: new Map() }
  }

  #compile(live: LiveIsolate, id: number): ivm.Reference {
    const known = live.functions.get(id)
    if (known !== undefined) return known
    const source = this.#sources.get(id)
    if (source === undefined) throw new Error(`The isolate has no function ${id}`)
    const compiled = compileFunction(source, contextOf(live))
    live.functions.set(id, compiled)
    return compiled
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

function contextOf({ isolate, context, allowEval }: LiveIsolate): ScriptContext<ivm.Reference> {
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
