import type { AttachmentRecord, DocumentEdit } from '../contracts/shard-replica.ts'
import type { AttachmentDigest } from './revision-hash.ts'

/** As `revisionHash` takes them. */
export function attachmentDigests(
  attachments: readonly AttachmentRecord[] | undefined,
): readonly AttachmentDigest[] | undefined {
  return attachments?.map(({ name, contentType, digest }) => ({
    name, type: contentType, md5: Buffer.from(digest, 'base64'),
  }))
}

/**
 * The attachments of the revision that an edit made, for spreading into it. An edit without a parent that became
 * a later generation revived a tombstone, and so wrote all of them.
 */
export function editedAttachments(
  { parent, attachments }: Pick<DocumentEdit, 'parent' | 'attachments'>, generation: number,
): { readonly attachments?: readonly AttachmentRecord[] } {
  if (attachments === undefined) return {}
  return { attachments: parent === null && generation > 1
    ? attachments.map(attachment => ({ ...attachment, revpos: generation }))
    : attachments }
}
