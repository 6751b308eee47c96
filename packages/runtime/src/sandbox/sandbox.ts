/**
 * Runs JavaScript functions of design documents, such as map and reduce functions, filters and validations. The
 * functions are not trusted. `IsolateSandbox` runs them in child processes, `MemorySandbox` in this process (trusted
 * functions of tests only). Both run `sandbox-suite`.
 *
 * A source is `function (doc) {}`, with or without a name, an arrow function, another expression that returns a
 * function, or a script whose last statement is one of these. The language is that of the running Node.js. Functions
 * find the globals `emit`, `sum`, `isArray`, `toJSON`, `log` and `require`, and none of Node.js. They also find
 * `provides`, `registerType`, `start`, `send` and `getRow`, which are for show and list functions; in all others the
 * first four have no effect, as in CouchDB's update and filter functions, and `getRow` throws.
 * `eval` and `Function` throw an `EvalError`: functions cannot make code of texts, except modules with `require`.
 */
export interface Sandbox {
  /**
   * Compiles a function without calling it.
   *
   * @throws SandboxError `compilation` with line and column, and the codes of all calls
   */
  compile(called: SandboxFunction): Promise<void>
  /**
   * Calls a map function with each document, in their order. The function cannot change the document, which is frozen
   * unless the source shows that it only reads. A function that throws for one document is called with the next ones
   * all the same.
   *
   * @param documents at most `SandboxLimits.callItemsMax` documents
   * @param onLog receives each line that the function logs, after the call; without it they go to the log of the node
   * @returns one outcome for each document
   * @throws SandboxError
   */
  map(
    called: SandboxFunction, documents: readonly JsonText[], onLog?: (line: string) => void,
  ): Promise<readonly MapOutcome[]>
  /**
   * Calls a function with each list of arguments, in their order. Each text is a JSON array: `[newDoc, oldDoc, userCtx,
   * secObj]` for a validation, `[keys, values, rereduce]` for a reduce function. `this` is the value of `modules`.
   *
   * @param argumentLists at most `SandboxLimits.callItemsMax` lists
   * @returns one outcome for each list
   * @throws SandboxError
   */
  call(called: SandboxFunction, argumentLists: readonly JsonText[]): Promise<readonly CallOutcome[]>
  /**
   * Calls a filter function with each document and the request, in their order. `this` is the value of `modules`.
   *
   * @param request the second argument of each call
   * @param documents at most `SandboxLimits.callItemsMax` documents
   * @returns one outcome for each document: the value is `true` or `false`
   * @throws SandboxError
   */
  filter(called: SandboxFunction, request: JsonText, documents: readonly JsonText[]): Promise<readonly CallOutcome[]>
  /**
   * Calls a show or list function. `this` is the value of `modules`.
   *
   * @returns as a value: the response object, whose members `headers` and `body` contain what the function and its
   *   `provides` functions returned, and what they passed to `start` and `send`. The function made the object, so
   *   that any member may have any type. A text that the function returned is the `body`.
   * @throws SandboxError, `too_large` when the response has more bytes than `SandboxLimits.resultBytesMax`
   */
  respond(called: SandboxFunction, given: RespondArguments): Promise<CallOutcome>
}

/** What a show or list function receives. The JSON texts must not contain line breaks. */
export interface RespondArguments {
  /** JSON array: `[doc, req]` for a show function, `[head, req]` for a list function. */
  readonly argumentList: string
  /** The rows that `getRow` returns, as JSON. */
  readonly rows?: readonly string[]
  /** JSON of what `getRow` throws behind these rows. Without it `getRow` returns null there. */
  readonly rowsLeft?: string
}

/** Valid JSON, as text or as its UTF-8 bytes. */
export type JsonText = string | Uint8Array

/** A function, and the isolate in which it runs. Functions with equal first three members share one isolate. */
export interface SandboxFunction {
  /** Names the database. Its calls share one queue and a share of the child processes. */
  readonly database: string
  /** The id of the design document. */
  readonly designDocument: string
  /**
   * JSON text of an object, for instance the design document. `require('a/b')` finds the source text of a module in its
   * member `a`, member `b`.
   */
  readonly modules: string
  readonly source: string
}

/** A row that a map function emitted, as JSON texts. */
export interface EmittedRow { readonly key: string; readonly value: string }

/**
 * The number of rows that one document may have in an index. 20,000 rows take about 50 ms without a pause, because they
 * are sorted and written together.
 */
export const documentRowsMax = 20_000

/**
 * The rows of one document in the order of the calls of `emit`, the number of rows if there are more than
 * `documentRowsMax`, or why the function failed for this document.
 */
export type MapOutcome =
  | { readonly kind: 'rows'; readonly rows: readonly EmittedRow[] }
  | { readonly kind: 'tooManyRows'; readonly count: number }
  | Thrown
  | FunctionFailure

/** The JSON text of what the function returned (`null` for undefined). */
export type CallOutcome = { readonly kind: 'value'; readonly json: string } | Thrown | FunctionFailure

/**
 * The function threw a value that is not an `Error`: its JSON text, for instance `{"forbidden":"..."}`. If this has
 * more than 65,536 UTF-16 units, the first 10,000 of the text `forbidden` or `unauthorized` remain, or of its JSON when
 * it is no text; a value without these is a `FunctionFailure`.
 */
export interface Thrown { readonly kind: 'thrown'; readonly json: string }

/** The function threw an `Error`, or what it returned, emitted or threw is not JSON. */
export interface FunctionFailure extends SourcePosition {
  readonly kind: 'error'
  /** The error of CouchDB's API, if `require` threw the error: there is no such module, or it could not be loaded. */
  readonly code?: RequireErrorCode
  readonly message: string
}

export type RequireErrorCode = 'invalid_require_path' | 'compilation_error'

/** Where an error occurred. The members are null when it is not known. Lines and columns count from 1. */
export interface SourcePosition {
  readonly line: number | null
  readonly column: number | null
  /** The path of the library module, as in `require`; null for the function itself. */
  readonly module: string | null
}

/** Limits of one node. */
export interface SandboxLimits {
  /**
   * Milliseconds that one call may take. Where the system has a /proc folder, a call may take up to four times as long
   * if its process used less than half of these milliseconds of CPU time, because the machine was busy.
   */
  readonly callMs: number
  /** Heap of an isolate in MiB, at least 8. */
  readonly heapMiB: number
  /** Resident memory of a child process in MiB. It is sampled where the system has a /proc folder. */
  readonly residentMiB: number
  /** Number of child processes. One database may use half of them, but at least one. */
  readonly childrenMax: number
  /** Milliseconds without a call after which the child processes end. */
  readonly idleMs: number
  /** Number of calls of one database that wait or run. */
  readonly databaseCallsMax: number
  /** Bytes of arguments and sources of all calls that wait or run. */
  readonly waitingBytesMax: number
  /** Number of documents or argument lists of one call. */
  readonly callItemsMax: number
  /** Bytes of the results of one call as UTF-8. Their length in UTF-16 code units is limited by the same number. */
  readonly resultBytesMax: number
}

/** The limits, except `childrenMax`, which depends on the machine. */
export const defaultSandboxLimits: Omit<SandboxLimits, 'childrenMax'> = {
  callMs: 5000,
  heapMiB: 64,
  residentMiB: 512,
  idleMs: 5 * 60_000,
  databaseCallsMax: 1000,
  waitingBytesMax: 64 * 1024 * 1024,
  callItemsMax: 1000,
  resultBytesMax: 16 * 1024 * 1024,
}

export type SandboxErrorCode =
  | 'compilation' // the source is no function; the error has the position
  | 'timeout' // the call took longer than `callMs`
  | 'memory' // the call used more than `heapMiB` or `residentMiB`
  | 'crashed' // the call ended its process in another way, or rejected a promise that nobody handles
  | 'too_large' // the results exceed `resultBytesMax`, or the call has too many items: try fewer items in a call
  | 'overloaded' // a queue is full, no child process could be started, or the system ended it: try later
  | 'unsupported' // this machine has no isolated-vm: it runs no functions of design documents
  | 'closed' // the node is shutting down

/** Why a call failed as a whole. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: SandboxErrorCode
  /** Known for `compilation` only. */
  readonly position: SourcePosition

  constructor(code: SandboxErrorCode, message: string, position: SourcePosition = unknownPosition) {
    super(message)
    this.code = code
    this.position = position
  }
}

export const unknownPosition: SourcePosition = { line: null, column: null, module: null }
