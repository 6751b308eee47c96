/**
 * Compiles the functions of views when a design document is saved, so that a syntax error is reported to the client who
 * made it (docs/reference/documents.md#design-documents).
 */
import {
  ApiError, builtInReduce, designPrefix, parseJsonObject, viewDefinitions, type IndexDefinition,
  type ParsedDocument,
} from '@sectional/core'
import { failureText, SandboxError, type SandboxFunction } from '@sectional/runtime'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * Milliseconds for which the functions of all design documents of one request may be compiled. Compiling one function
 * takes well below a millisecond, but each source may run for the time limit of a call when it is compiled.
 */
const compilationMsMax = 30_000

/** Compiles the functions of one written document. Parameters and errors as those of `DesignCompiler.check`. */
export async function checkDesignFunctions(
  id: string, document: ParsedDocument, request: RequestContext, services: Services,
): Promise<void> {
  if (id.startsWith(designPrefix)) await new DesignCompiler(request, services).check(id, document)
}

/** Compiles the design documents of one request, one function after the other. */
export class DesignCompiler {
  readonly #request: RequestContext
  readonly #services: Services
  /** Monotonic time in milliseconds after which no function is compiled. */
  readonly #deadline: number

  constructor(request: RequestContext, services: Services) {
    this.#request = request
    this.#services = services
    this.#deadline = services.runtime.clock.monotonic() + compilationMsMax
  }

  /**
   * Compiles the map and reduce functions of a design document whose structure is checked. Does nothing for other
   * documents and deletions, or when this machine runs no functions.
   *
   * @throws ApiError `compilation_error` with line and column for the first function that does not compile;
   * `service_unavailable` when the functions cannot be compiled now
   */
  async check(id: string, { body, deleted }: Pick<ParsedDocument, 'body' | 'deleted'>): Promise<void> {
    if (deleted || !id.startsWith(designPrefix)) return
    const definitions = viewDefinitions(parseJsonObject(body), this.#request.database)
    for (const [view, definition] of definitions) await this.checkView(id, view, definition)
  }

  /**
   * Compiles the functions of one view.
   *
   * @param id of the design document
   * @throws ApiError as `check`
   */
  async checkView(id: string, view: string, { map, reduce, options: { lib } }: IndexDefinition): Promise<void> {
    const modules = typeof lib === 'string' ? `{"views":{"lib":${lib}}}` : '{}'
    // A source may run code when it is compiled, which must not change the isolate of the saved design document.
    const designDocument = `compilation of ${id}`
    const called = { database: this.#request.database.incarnation, designDocument, modules }
    await this.#compile({ ...called, source: map }, `map function in the '${view}' view`)
    if (reduce === null || builtInReduce(reduce) !== undefined) return
    await this.#compile({ ...called, source: reduce }, `reduce function in the '${view}' view`)
  }

  async #compile(called: SandboxFunction, name: string): Promise<void> {
    const { clock, sandbox } = this.#services.runtime
    this.#request.signal.throwIfAborted()
    if (clock.monotonic() > this.#deadline) {
      throw unavailable(`The functions were not compiled within ${compilationMsMax} ms`)
    }
    try {
      await sandbox.compile(called)
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      const failure = failureOf(error, name)
      if (failure !== undefined) throw failure
    }
  }
}

/** Returns undefined when the machine runs no functions: their design documents can be saved all the same. */
function failureOf(error: SandboxError, name: string): ApiError | undefined {
  switch (error.code) {
    case 'unsupported': return undefined
    case 'overloaded': case 'closed': return unavailable(error.message)
    default: {
      const reason = `Compilation of the ${name} failed: ${failureText(error.message, error.position)}`
      return new ApiError('compilation_error', reason)
    }
  }
}

function unavailable(reason: string): ApiError {
  return new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '1' } })
}
