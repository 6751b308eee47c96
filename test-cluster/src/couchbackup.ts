/** The two functions of @cloudant/couchbackup as promises. The package has no types. */
import { createRequire } from 'node:module'
import type { Readable, Writable } from 'node:stream'

export interface BackupOptions {
  readonly parallelism?: number
  /** Documents of one request. */
  readonly bufferSize?: number
  readonly attachments?: boolean
}

type Done = (error: Error | null, summary: { readonly total: number }) => void

interface Couchbackup {
  backup(url: string, target: Writable, options: BackupOptions, done: Done): unknown
  restore(source: Readable, url: string, options: BackupOptions, done: Done): unknown
}

const couchbackup = createRequire(import.meta.url)('@cloudant/couchbackup') as Couchbackup

/** Resolves with the number of documents that were written to the stream. The stream is ended. */
export function backup(url: string, target: Writable, options: BackupOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    couchbackup.backup(
      url, target, options, (error, summary) => error ? reject(error) : target.end(() => resolve(summary.total)),
    )
  })
}

export function restore(source: Readable, url: string, options: BackupOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    couchbackup.restore(source, url, options, (error, summary) => error ? reject(error) : resolve(summary.total))
  })
}
