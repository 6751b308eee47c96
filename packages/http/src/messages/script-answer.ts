/** JSON as a script that calls a function of the page (JSONP). */
import type { HttpBodyWriter } from '@sectional/runtime'

export const scriptType = 'application/javascript'

/** With a comment in front, nobody determines the first bytes of the answer, which other programs may interpret. */
const opening = (callback: string): string => `/* CouchDB */${callback}(`
const closing = ');\n'

/** @param body JSON with or without the newline that ends a body */
export function asScript(callback: string, body: string | Uint8Array): Uint8Array {
  const json = Buffer.from(body)
  const end = json.at(-1) === 0x0a ? json.length - 1 : json.length
  return Buffer.concat([Buffer.from(opening(callback)), json.subarray(0, end), Buffer.from(closing)])
}

/** Returns a writer that turns the JSON that is written into a script. */
export function scriptWriter(callback: string, writer: HttpBodyWriter): HttpBodyWriter {
  let before = opening(callback)
  return {
    write: chunk => {
      const text = before
      before = ''
      return writer.write(text === '' ? chunk : Buffer.concat([Buffer.from(text), Buffer.from(chunk)]))
    },
    end: () => {
      // The client may be gone; the answer has ended in any case.
      writer.write(before + closing).catch(() => {})
      writer.end()
    },
    abort: () => { writer.abort() },
  }
}
