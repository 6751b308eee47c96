/**
 * A contract between layers as a table of its verbs. The table declares each verb once: its name, its shape, its
 * request and its reply. The contract's type is derived from it (`VerbsOf`), and so is every implementation that treats
 * all verbs of one shape alike, such as a stub that sends them to another node (`deriveVerbs`).
 */
import type { CallContext } from './call-context.ts'

/**
 * What travels in which direction:
 * - `call`: one request, one reply.
 * - `pages`: one request, then pages of rows. A reader that stops early (`return`) releases everything at both ends.
 * - `upload`: chunks of bytes towards the replica, then one reply.
 * - `download`: one request, then chunks of bytes.
 */
export type VerbShape = 'call' | 'pages' | 'upload' | 'download'

/** The declaration of one verb. `Reply` is the type of a row for `pages`, and of a chunk for `download`. */
export interface Verb<Shape extends VerbShape, Request, Reply> {
  readonly shape: Shape
  /** False: the verb takes only a context. */
  readonly takesRequest: boolean
  /**
   * Whether a call with this request may wait for an event, for minutes, instead of being answered as soon as possible.
   * Such calls have a budget of their own on a link. Absent: no call of the verb waits.
   */
  readonly waits?: (request: Request) => boolean
  /** Never set at run time; it only carries the types. */
  readonly signature?: (request: Request) => Reply
}

/** Verbs by name. */
export type VerbTable = Readonly<Record<string, Verb<VerbShape, never, unknown>>>

type Chunks = AsyncIterable<Uint8Array>

interface Answers<Reply> {
  readonly call: Promise<Reply>
  readonly pages: AsyncIterable<readonly Reply[]>
  readonly upload: Promise<Reply>
  readonly download: AsyncIterable<Reply>
}

type Answer<Shape extends VerbShape, Reply> = Answers<Reply>[Shape]

/** The method that implements a verb. */
export type VerbMethod<V> = V extends Verb<infer Shape, infer Request, infer Reply>
  ? (...parameters: [Request] extends [void] ? [context: CallContext] : [request: Request, context: CallContext])
      => Answer<Shape, Reply>
  : never

/** The contract that a table declares: an object with a method for each verb. */
export type VerbsOf<Table> = { [Name in keyof Table]: VerbMethod<Table[Name]> }

/** The names of the verbs of one shape. */
export type VerbNames<Table, Shape extends VerbShape> =
  { [Name in keyof Table]: Table[Name] extends Verb<Shape, never, unknown> ? Name : never }[keyof Table] & string

type ShapesOf<Table extends VerbTable> = Table[keyof Table]['shape']

/** Declares a verb with one request and one reply. */
export function call<Request, Reply>(
  options: Pick<Verb<'call', Request, Reply>, 'waits'> = {},
): Verb<'call', Request, Reply> {
  return { shape: 'call', takesRequest: true, ...options }
}

/** Declares a verb with one reply and no request. */
export function bareCall<Reply>(): Verb<'call', void, Reply> {
  return { shape: 'call', takesRequest: false }
}

/** Declares a verb that answers with pages of rows. */
export function pages<Request, Row>(): Verb<'pages', Request, Row> {
  return { shape: 'pages', takesRequest: true }
}

/** Declares a verb that takes chunks of bytes and answers once. */
export function upload<Reply>(): Verb<'upload', Chunks, Reply> {
  return { shape: 'upload', takesRequest: true }
}

/** Declares a verb that answers with chunks of bytes. */
export function download<Request>(): Verb<'download', Request, Uint8Array> {
  return { shape: 'download', takesRequest: true }
}

/** The type of a request as far as the verb's shape alone determines it. */
type AnyRequest<Shape extends VerbShape> = Shape extends 'upload' ? Chunks : unknown
/** The type of an answer as far as the verb's shape alone determines it. */
type AnyAnswer<Shape extends VerbShape> = Shape extends 'download' ? Chunks : Answer<Shape, unknown>

/** One verb of a table, for a derivation that depends only on the verb's shape. */
export interface NamedVerb<Table, Shape extends VerbShape> {
  readonly name: VerbNames<Table, Shape>
  readonly waits: ((request: unknown) => boolean) | undefined
  /** Calls the verb of `implementation`. The request of a verb that takes none is `undefined`. */
  readonly invoke:
    (implementation: VerbsOf<Table>, request: AnyRequest<Shape>, context: CallContext) => AnyAnswer<Shape>
}

/**
 * For each shape, a function that makes the methods of its verbs. It is called once for each verb of the table. The
 * function that it returns runs for each call, and receives the constructor's argument (`Self`), the request and the
 * context.
 */
export type VerbDerivation<Table extends VerbTable, Self> = {
  readonly [Shape in ShapesOf<Table>]: (verb: NamedVerb<Table, Shape>) =>
    (self: Self, request: AnyRequest<Shape>, context: CallContext) => AnyAnswer<Shape>
}

/**
 * Returns a class with a method for each verb of the table. The methods are made once and lie on the prototype, so that
 * a call costs no more than a call of a handwritten class.
 *
 * @param derivation makes the methods; the types check the shapes of its answers, not the rows and replies of each verb
 */
export function deriveVerbs<Table extends VerbTable, Self>(
  table: Table, derivation: VerbDerivation<Table, Self>,
): new (self: Self) => VerbsOf<Table> {
  class Derived {
    readonly #self: Self

    constructor(self: Self) { this.#self = self }

    static {
      for (const [name, act] of mapVerbs<Table, Act<Self>>(table, derivation)) {
        const value = table[name]!.takesRequest
          ? function (this: Derived, request: never, context: CallContext) { return act(this.#self, request, context) }
          : function (this: Derived, context: CallContext) { return act(this.#self, undefined as never, context) }
        Object.defineProperty(Derived.prototype, name, { value, configurable: true, writable: true })
      }
    }
  }
  return Derived as unknown as new (self: Self) => VerbsOf<Table>
}

/**
 * Calls the function of the verb's shape for each verb of the table, in the table's order.
 *
 * @returns what the functions returned, by the names of the verbs
 */
export function mapVerbs<Table extends VerbTable, Result>(
  table: Table, each: { readonly [Shape in ShapesOf<Table>]: (verb: NamedVerb<Table, Shape>) => Result },
): ReadonlyMap<string, Result> {
  return new Map(Object.keys(table).map(name => {
    const verb = namedVerb(table, name)
    return [name, (each[table[name]!.shape as ShapesOf<Table>] as (named: unknown) => Result)(verb)]
  }))
}

type Act<Self> = (self: Self, request: never, context: CallContext) => unknown
type Methods = Readonly<Record<string, (...parameters: readonly unknown[]) => unknown>>

function namedVerb(table: VerbTable, name: string) {
  const { takesRequest, waits } = table[name]!
  return {
    name,
    waits,
    invoke: takesRequest
      ? (implementation: Methods, request: unknown, context: CallContext) => implementation[name]!(request, context)
      : (implementation: Methods, _request: unknown, context: CallContext) => implementation[name]!(context),
  }
}
