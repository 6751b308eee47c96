/** What is used of pako, which comes without types. */
declare module 'pako' {
  export class Deflate {
    constructor(options: { readonly level: number; readonly gzip: boolean; readonly chunkSize: number })
    onData: (chunk: Uint8Array) => void
    /** @param last end the stream behind these bytes */
    push(bytes: Uint8Array, last: boolean): boolean
  }
}
