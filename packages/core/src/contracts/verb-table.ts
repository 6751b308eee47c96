/**
 * A contract between layers as a table of its verbs. The table declares each verb once: its name, its shape, its
 * request and its reply. The contract's type is derived from it (`VerbsOf`), and so is every implementation that treats
 * all verbs of one shape alike, such as a stub that sends them to another node (`deriveVerbs`).
 *
 * A table may contain the table of another contract. An object of the outer contract then has a member of that name,
 * which implements the other contract.
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

type AnyVerb = Verb<VerbShape, never, unknown>

/**
 * The verbs of a contract, and the tables of its members, by name. A verb's name is unique in a table together with the
 * tables of its members, because it alone identifies the verb on the wire.
 */
export interface VerbTable { readonly [name: string]: AnyVerb | VerbTable }

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

/** The contract that a table declares: an object with a method for each verb and a member for each inner table. */
export type VerbsOf<Table> =
  { [Name in keyof Table]: Table[Name] extends AnyVerb ? VerbMethod<Table[Name]> : VerbsOf<Table[Name]> }

/** The names of the verbs of one shape, or of all shapes, in a table and in the tables of its members. */
export type VerbNames<Table, Shape extends VerbShape = VerbShape, Name = keyof Table> =
  Name extends keyof Table & string
    ? Table[Name] extends AnyVerb
      ? Table[Name] extends Verb<Shape, never, unknown> ? Name : never
      : VerbNames<Table[Name], Shape>
    : never

type ShapesOf<Table, Name = keyof Table> =
  Name extends keyof Table ? Table[Name] extends AnyVerb ? Table[Name]['shape'] : ShapesOf<Table[Name]> : never

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
  /**
   * Calls the verb of `implementation`, or of its member that has the verb. The request of a verb that takes none is
   * `undefined`.
   */
  readonly invoke:
    (implementation: VerbsOf<Table>, request: AnyRequest<Shape>, context: CallContext) => AnyAnswer<Shape>
}

/**
 * For each shape, a function that makes the methods of its verbs. It is called once for each verb of the table and of
 * the tables of its members. The function that it returns runs for each call, and receives the constructor's argument
 * (`Self`), the request and the context.
 */
export type VerbDerivation<Table extends VerbTable, Self> = {
  readonly [Shape in ShapesOf<Table>]: (verb: NamedVerb<Table, Shape>) =>
    (self: Self, request: AnyRequest<Shape>, context: CallContext) => AnyAnswer<Shape>
}

/**
 * Returns a class with a method for each verb of the table. The methods are made once and lie on the prototype, so that
 * a call costs no more than a call of a handwritten class. An instance makes a member when the member is first read,
 * and keeps it.
 *
 * @param derivation makes the methods; the types check the shapes of its answers, not the rows and replies of each verb
 */
export function deriveVerbs<Table extends VerbTable, Self>(
  table: Table, derivation: VerbDerivation<Table, Self>,
): new (self: Self) => VerbsOf<Table> {
  return derivedClass(table, mapVerbs<Table, Act<Self>>(table, derivation)) as new (self: Self) => VerbsOf<Table>
}

/**
 * Calls the function of the verb's shape for each verb of the table and of the tables of its members, in the order of
 * the table.
 *
 * @returns what the functions returned, by the names of the verbs
 */
export function mapVerbs<Table extends VerbTable, Result>(
  table: Table, each: { readonly [Shape in ShapesOf<Table>]: (verb: NamedVerb<Table, Shape>) => Result },
): ReadonlyMap<string, Result> {
  const byShape = each as unknown as Readonly<Record<VerbShape, (verb: DeclaredVerb) => Result>>
  return new Map(declaredVerbs(table).map(verb => [verb.name, byShape[verb.shape](verb)]))
}

type Act<Self> = (self: Self, request: never, context: CallContext) => unknown

/** @param acts the functions of the verbs, by name; those of other tables are ignored */
function derivedClass<Self>(table: VerbTable, acts: ReadonlyMap<string, Act<Self>>): new (self: Self) => unknown {
  class Derived {
    readonly #self: Self
    /** The members that were read before, by name. */
    #members: Record<string, unknown> | undefined

    constructor(self: Self) { this.#self = self }

    static {
      for (const [name, declared] of Object.entries(table)) {
        const property = isVerb(declared)
          ? { value: Derived.#method(declared, acts.get(name)!), writable: true }
          : { get: Derived.#member(name, derivedClass(declared, acts)) }
        Object.defineProperty(Derived.prototype, name, { ...property, configurable: true })
      }
    }

    static #method({ takesRequest }: AnyVerb, act: Act<Self>) {
      return takesRequest
        ? function (this: Derived, request: never, context: CallContext) { return act(this.#self, request, context) }
        : function (this: Derived, context: CallContext) { return act(this.#self, undefined as never, context) }
    }

    static #member(name: string, Member: new (self: Self) => unknown) {
      return function (this: Derived) { return (this.#members ??= {})[name] ??= new Member(this.#self) }
    }
  }
  return Derived
}

type Methods = Readonly<Record<string, (...parameters: readonly unknown[]) => unknown>>

interface DeclaredVerb extends Pick<AnyVerb, 'shape' | 'waits'> {
  readonly name: string
  readonly invoke: (implementation: never, request: unknown, context: CallContext) => unknown
}

function declaredVerbs(table: VerbTable): readonly DeclaredVerb[] {
  return Object.entries(table).flatMap(([name, declared]): readonly DeclaredVerb[] => isVerb(declared)
    ? [declaredVerb(name, declared)]
    : declaredVerbs(declared).map(({ invoke, ...verb }) => ({
      ...verb,
      invoke: (whole: Readonly<Record<string, never>>, request, context) => invoke(whole[name]!, request, context),
    })))
}

function declaredVerb(name: string, { shape, takesRequest, waits }: AnyVerb): DeclaredVerb {
  return {
    name,
    shape,
    waits,
    invoke: takesRequest
      ? (implementation: Methods, request, context) => implementation[name]!(request, context)
      : (implementation: Methods, _request, context) => implementation[name]!(context),
  }
}

function isVerb(declared: AnyVerb | VerbTable): declared is AnyVerb {
  return typeof declared['shape'] === 'string'
}
