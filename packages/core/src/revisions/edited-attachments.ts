import type { AttachmentRecord, DocumentEdit } from '../contracts/shard-replica.ts'
import type { AttachmentDigest } from './revision-hash.ts'

/** Converts attachments to the form that `revisionHash` takes. */
export function attachmentDigests(
  attachments: readonly AttachmentRecord[] | undefined,
): readonly AttachmentDigest[] | undefined {
  return attachments?.map(({ name, contentType, digest }) => ({
    name, type: contentType, md5: Buffer.from(digest, 'base64'),
  }))
}

/**
 * Returns an object with the attachments of the revision that an edit made, to be spread into the revision. When an
 * edit without a parent made a later generation than the first, it revived a tombstone and wrote all of its
 * attachments.
 */
export function editedAttachments(
  { parent, attachments }: Pick<DocumentEdit, 'parent' | 'attachments'>, generation: number,
): { readonly attachments?: readonly AttachmentRecord[] } {
  if (attachments === undefined) return {}
  return { attachments: parent === null && generation > 1
    ? attachments.map(attachment => ({ ...attachment, revpos: generation }))
    : attachments }
}
