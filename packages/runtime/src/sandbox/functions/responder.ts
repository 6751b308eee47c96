/**
 * What show and list functions use in their context: `provides`, `registerType`, `start`, `send` and `getRow`. The
 * source text of `createResponder` is evaluated inside the context of a design document, like the functions of
 * `environment.ts`.
 */
import { MediaTypes } from './media-types.ts'
import { OpenResponse } from './open-response.ts'
import type { RespondCall } from './respond-text.ts'

/**
 * Calls a show or list function.
 *
 * @param text the text that `respondText` returns
 * @param lengthMax length of the text that the function may send
 * @returns the response object, or null when the function sent more text
 */
export type Respond = (called: unknown, text: string, lengthMax: number) => unknown

/** @param invoke calls a function with the design document as `this`; refuses functions that are asynchronous */
export function createResponder(
  scope: Record<string, unknown>, invoke: (called: unknown, argumentList: readonly unknown[]) => unknown,
): Respond {
  const { parse } = JSON
  const { apply } = Reflect
  const { indexOf, slice } = String.prototype
  const ErrorClass = Error
  const TypesClass = MediaTypes
  const ResponseClass = OpenResponse
  /** Undefined while no show or list function runs. */
  let open: OpenResponse | undefined

  scope['provides'] = (format: unknown, render: unknown) => open?.provides(format, render)
  scope['registerType'] = (format: unknown, ...mediaTypes: unknown[]) => open?.registerType(format, mediaTypes)
  scope['start'] = (response: unknown) => open?.start(response)
  scope['send'] = (chunk: unknown) => open?.send(chunk)
  scope['getRow'] = () => {
    if (open === undefined) throw new ErrorClass(`'getRow' is only for list functions.`)
    return open.getRow()
  }

  return (called, text, lengthMax) => {
    const end = apply(indexOf, text, ['\n', 0])
    const call = parse(apply(slice, text, [0, end])) as RespondCall
    const response = new ResponseClass(call, text, end + 1, lengthMax, new TypesClass())
    open = response
    let result: unknown
    try {
      result = response.make(called, invoke)
    } catch (error) {
      if (!response.isTooLong) throw error
    } finally {
      open = undefined
    }
    if (response.isTooLong) return null
    if (response.isRowMissing) throw call.rowsLeft
    return result
  }
}
