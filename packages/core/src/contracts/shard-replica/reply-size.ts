/** The limit of a reply with whole documents. The caller repeats its request for the documents that did not fit. */
import type { DocumentRevision } from './document-revision.ts'
import type { OpenedRevision } from './document-verbs.ts'

/** A reply of `openRevisions` or `openLocalDocuments` ends with the document that exceeds this many bytes. */
export const openedBytesMax = 1024 * 1024
/** Bytes counted for each revision besides its body: a document may have thousands of leaves with small bodies. */
export const openedRevisionBytes = 256

/** Estimates the bytes of a revision on the wire. */
export function revisionBytes({ id, path, body, attachments = [] }: DocumentRevision): number {
  const names = attachments.reduce(
    (sum, { name, contentType }) => sum + name.length + contentType.length + attachmentBytes, 0)
  return id.length + path.ids.length * hashBytes + body.length + names
}

const attachmentBytes = 128
const hashBytes = 20

/** Estimates the bytes of one document's found revisions on the wire. */
export function openedBytes(revisions: readonly OpenedRevision[]): number {
  return revisions.reduce((sum, each) => sum + (each.kind === 'found' ? revisionBytes(each.revision) : 0), 0)
}

/** Returns the first entries up to the one that exceeds `openedBytesMax` in total, and at least the first entry. */
export function fittingFirst<T>(entries: readonly T[], bytesOf: (entry: T) => number): readonly T[] {
  let bytes = 0
  for (const [index, entry] of entries.entries()) {
    if (bytes > openedBytesMax) return entries.slice(0, index)
    bytes += bytesOf(entry)
  }
  return entries
}
