/** Options of documents, attachments and partitions. */
import { converted, flag, integer, list, option } from '@sectional/core/options'
import { headerValue } from './header-types.ts'

/** Maximum bytes of a document, whatever the options say: nodes send a document in one message. */
const travellingBytesMax = 48 * 1024 * 1024
const bytes = integer({ min: 1, max: 2 ** 46, infinite: true, unit: 'bytes' })
const bytesOrNone = integer({ min: 0, max: 2 ** 46, infinite: true, unit: 'bytes' })
const batchCount = integer({ min: 1, max: 10_000_000, infinite: true })

export const documentDeclarations = {
  documentBytesMax: converted(option('couchdb/max_document_size', bytes, {
    default: 8_000_000,
    effect: 'live',
    help: `Largest document, without its attachments; ${travellingBytesMax} bytes at most, whatever is set.`,
  }), value => Math.min(value, travellingBytesMax)),

  attachmentBytesMax: option('couchdb/max_attachment_size', bytes, {
    default: 1_073_741_824,
    effect: 'live',
    help: 'Largest attachment, as it is uploaded; for an attachment that is uploaded as gzip also after decoding.',
  }),

  documentIdBytesMax: option('couchdb/max_document_id_length', bytes, {
    default: Infinity,
    effect: 'live',
    help: 'Longest document id; 65536 bytes at most, whatever is set.',
  }),

  bulkDocumentsMax: option('couchdb/max_bulk_docs_count', batchCount, {
    default: 50_000,
    effect: 'live',
    help: 'Maximum number of documents in one _bulk_docs request; a request with more gets 413. Each document takes '
      + 'about 2 KiB of memory besides its bytes while the request runs.',
  }),

  /**
   * Maximum documents of a `_bulk_get`; maximum documents, and revisions, of a `_revs_diff`, `_missing_revs` or
   * `_purge`.
   */
  bulkGetMax: option('couchdb/max_bulk_get_count', batchCount, {
    default: 50_000,
    effect: 'live',
    help: 'Maximum number of documents in one _bulk_get request, and of documents and revisions in one _revs_diff, '
      + '_missing_revs or _purge request; a request with more gets 413.',
  }),

  purgedRevisionsMax: option('purge/max_revisions_number', integer({ min: 1, max: 1_000_000_000, infinite: true }), {
    default: Infinity,
    effect: 'live',
    help: 'Maximum number of revisions in one _purge request.',
  }),

  /** Infinity means no limit. */
  partitionBytesMax: converted(option('couchdb/max_partition_size', bytesOrNone, {
    default: 10_737_418_240,
    effect: 'live',
    help: 'Maximum size of the JSON in one partition of a partitioned database; a partition with more accepts only '
      + 'deletions. 0: no limit.',
  }), value => value === 0 ? Infinity : value),

  /** 0 disables the compression of attachments. */
  compressionLevel: option('attachments/compression_level', integer({ min: 0, max: 9 }), {
    default: 8,
    effect: 'live',
    help: 'gzip level for attachments of compressible types, from 1 (fastest) to 9 (smallest). 0: attachments are '
      + 'stored as they are uploaded.',
  }),

  /** Media types; the subtype may be `*`. */
  compressibleTypes: option('attachments/compressible_types', list, {
    default: ['text/*', 'application/javascript', 'application/json', 'application/xml'],
    effect: 'live',
    help: 'Content types of attachments that are stored compressed.',
  }),

  sandboxAttachments: option('csp/attachments_enable', flag, {
    default: true,
    effect: 'live',
    help: 'Send attachments with the header Content-Security-Policy.',
  }),

  attachmentPolicy: option('csp/attachments_header_value', headerValue, {
    default: 'sandbox',
    effect: 'live',
    help: 'Value of the header Content-Security-Policy of attachments.',
  }),

  sandboxResponses: option('csp/showlist_enable', flag, {
    default: true,
    effect: 'live',
    help: 'Send responses of functions of design documents with the header Content-Security-Policy.',
  }),

  responsePolicy: option('csp/showlist_header_value', headerValue, {
    default: 'sandbox',
    effect: 'live',
    help: 'Value of the header Content-Security-Policy of responses of functions of design documents.',
  }),
}
