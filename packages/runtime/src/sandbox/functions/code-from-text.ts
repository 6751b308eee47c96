/**
 * Takes `eval`, `Function` and the constructors of the other kinds of functions away: they throw an `EvalError`. V8 can
 * forbid them too, but isolated-vm allows them in all isolates. The source text of this function is evaluated inside
 * the context, like the functions of `environment.ts`.
 *
 * @returns a function after which the next read of the global `eval` finds the built-in function, and no later one
 */
export function createEvalGuard(scope: Record<string, unknown>): () => void {
  const { defineProperty, getPrototypeOf } = Object
  const ErrorClass = EvalError
  const builtIn = scope['eval']
  const refuse = () => { throw new ErrorClass('Functions of design documents cannot make code of texts.') }
  const kinds = [() => {}, function* () {}, async () => {}, async function* () {}]

  function set(target: object, name: string, value: unknown): void {
    defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true })
  }

  for (let index = 0; index < kinds.length; index++) {
    const prototype = getPrototypeOf(kinds[index]) as { readonly constructor: Function }
    const refused = function () { refuse() }
    defineProperty(refused, 'name', { value: prototype.constructor.name })
    // `instanceof` goes on to work.
    refused.prototype = prototype
    set(prototype, 'constructor', refused)
  }
  set(scope, 'Function', getPrototypeOf(refuse).constructor)
  set(scope, 'eval', refuse)

  return () => defineProperty(scope, 'eval', {
    configurable: true,
    get: () => {
      set(scope, 'eval', refuse)
      return builtIn
    },
  })
}
