/** How much one reply holds: what goes beyond is to be asked for again. */
import type { DocumentRevision } from './document-revision.ts'
import type { OpenedRevision } from './document-verbs.ts'

/** A reply of `openRevisions` or `openLocalDocuments` ends with the document that goes beyond so many bytes. */
export const openedBytesMax = 1024 * 1024
/** What a revision counts for beside its body: a document may have thousands of leaves with small bodies. */
export const openedRevisionBytes = 256

/** About the bytes that a revision takes when it travels. */
export function revisionBytes({ id, path, body, attachments = [] }: DocumentRevision): number {
  const names = attachments.reduce(
    (sum, { name, contentType }) => sum + name.length + contentType.length + attachmentBytes, 0)
  return id.length + path.ids.length * hashBytes + body.length + names
}

const attachmentBytes = 128
const hashBytes = 20

/** About the bytes of what is found of one document. */
export function openedBytes(revisions: readonly OpenedRevision[]): number {
  return revisions.reduce((sum, each) => sum + (each.kind === 'found' ? revisionBytes(each.revision) : 0), 0)
}

/** Of the first entries, as many as take few bytes (`openedBytesMax`), and the first in any case. */
export function fittingFirst<T>(entries: readonly T[], bytesOf: (entry: T) => number): readonly T[] {
  let bytes = 0
  for (const [index, entry] of entries.entries()) {
    if (bytes > openedBytesMax) return entries.slice(0, index)
    bytes += bytesOf(entry)
  }
  return entries
}
