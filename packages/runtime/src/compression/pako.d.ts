/** Types of the parts of pako that are used; the package has none. */
declare module 'pako' {
  export class Deflate {
    constructor(options: { readonly level: number; readonly gzip: boolean; readonly chunkSize: number })
    onData: (chunk: Uint8Array) => void
    /** @param last whether the stream ends after these bytes */
    push(bytes: Uint8Array, last: boolean): boolean
  }
}
