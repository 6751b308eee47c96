/**
 * The one registry of errors that a client can see: name, HTTP status and default reason
 * (docs/reference/README.md#errors). `error-rendering.ts` of `packages/http` is the only place that renders them.
 * Outcomes of single documents, such as conflicts, are values and are not thrown.
 */

export interface ErrorEntry { readonly status: number; readonly error: string; readonly reason?: string }

export const errorRegistry = {
  bad_request: { status: 400, error: 'bad_request' },
  invalid_json: { status: 400, error: 'bad_request', reason: 'invalid UTF-8 JSON' },
  not_an_object: { status: 400, error: 'bad_request', reason: 'Request body must be a JSON object' },
  missing_body: { status: 400, error: 'bad_request', reason: 'Missing request body' },
  invalid_url_encoding: { status: 400, error: 'bad_request', reason: 'invalid_url_encoding' },
  invalid_rev_format: { status: 400, error: 'bad_request', reason: 'Invalid rev format' },
  query_parse_error: { status: 400, error: 'query_parse_error' },
  illegal_database_name: { status: 400, error: 'illegal_database_name' },
  database_name_too_long: { status: 400, error: 'database_name_too_long' },
  illegal_docid: { status: 400, error: 'illegal_docid' },
  illegal_partition: { status: 400, error: 'illegal_partition' },
  invalid_design_doc: { status: 400, error: 'invalid_design_doc' },
  modification_not_allowed: {
    status: 400, error: 'modification_not_allowed', reason: 'This config variable is read-only',
  },
  content_md5_mismatch: { status: 400, error: 'content_md5_mismatch', reason: 'Possible message corruption.' },
  doc_validation: { status: 400, error: 'doc_validation' },
  unauthorized: { status: 401, error: 'unauthorized' },
  not_server_admin: { status: 401, error: 'unauthorized', reason: 'You are not a server admin.' },
  forbidden: { status: 403, error: 'forbidden' },
  partition_overflow: { status: 403, error: 'partition_overflow' },
  missing: { status: 404, error: 'not_found', reason: 'missing' },
  deleted: { status: 404, error: 'not_found', reason: 'deleted' },
  database_missing: { status: 404, error: 'not_found', reason: 'Database does not exist.' },
  not_found: { status: 404, error: 'not_found' },
  list_error: { status: 404, error: 'list_error', reason: 'Invalid path.' },
  rewrite_error: { status: 404, error: 'rewrite_error', reason: 'Invalid path.' },
  show_error: { status: 404, error: 'show_error', reason: 'Invalid path.' },
  update_error: { status: 404, error: 'update_error', reason: 'Invalid path.' },
  method_not_allowed: { status: 405, error: 'method_not_allowed' },
  not_acceptable: { status: 406, error: 'not_acceptable' },
  request_timeout: { status: 408, error: 'request_timeout', reason: 'The body of the request came too slowly.' },
  missing_rev: { status: 409, error: 'not_found', reason: 'missing_rev' },
  missing_attachment: { status: 404, error: 'not_found', reason: 'Document is missing attachment' },
  conflict: { status: 409, error: 'conflict', reason: 'Document update conflict.' },
  gone: { status: 410, error: 'gone' },
  file_exists: {
    status: 412, error: 'file_exists', reason: 'The database could not be created, the file already exists.',
  },
  missing_stub: { status: 412, error: 'missing_stub' },
  nodedown: { status: 412, error: 'nodedown' },
  too_large: { status: 413, error: 'too_large', reason: 'the request entity is too large' },
  document_too_large: { status: 413, error: 'document_too_large' },
  attachment_too_large: { status: 413, error: 'attachment_too_large' },
  too_long: { status: 414, error: 'too_long', reason: 'the request uri is too long' },
  bad_content_type: { status: 415, error: 'bad_content_type' },
  range_not_satisfiable: {
    status: 416, error: 'requested_range_not_satisfiable', reason: 'Requested range not satisfiable',
  },
  internal_server_error: { status: 500, error: 'internal_server_error' },
  invalid_value: { status: 500, error: 'invalid_value' },
  unknown_error: { status: 500, error: 'unknown_error' },
  compilation_error: { status: 400, error: 'compilation_error' },
  unknown_query_language: { status: 500, error: 'unknown_query_language' },
  timeout: {
    status: 500, error: 'timeout', reason: 'The request could not be processed in a reasonable amount of time.',
  },
  not_implemented: { status: 501, error: 'not_implemented', reason: 'this feature is not yet implemented' },
  service_unavailable: {
    status: 503, error: 'service unavailable',
    reason: 'Nodes are unable to service this request due to overloading or maintenance mode.',
  },
  insufficient_storage: { status: 507, error: 'insufficient_storage' },
  // Errors of `_find`, `_explain` and `_index`.
  invalid_key: { status: 400, error: 'invalid_key' },
  missing_required_key: { status: 400, error: 'missing_required_key' },
  bad_arg: { status: 400, error: 'bad_arg' },
  invalid_operator: { status: 400, error: 'invalid_operator' },
  not_supported: { status: 400, error: 'not_supported' },
  invalid_selector: { status: 400, error: 'invalid_selector' },
  invalid_selector_json: { status: 400, error: 'invalid_selector_json' },
  invalid_field: { status: 400, error: 'invalid_field' },
  invalid_field_name: { status: 400, error: 'invalid_field_name' },
  invalid_fields: { status: 400, error: 'invalid_fields' },
  invalid_string: { status: 400, error: 'invalid_string' },
  invalid_boolean: { status: 400, error: 'invalid_boolean' },
  invalid_non_neg_integer: { status: 400, error: 'invalid_non_neg_integer' },
  invalid_pos_integer: { status: 400, error: 'invalid_pos_integer' },
  invalid_sort_json: { status: 400, error: 'invalid_sort_json' },
  invalid_sort_field: { status: 400, error: 'invalid_sort_field' },
  invalid_index_name: { status: 400, error: 'invalid_index_name' },
  invalid_bulk_docs: { status: 400, error: 'invalid_bulk_docs' },
  invalid_ddoc_lang: { status: 400, error: 'invalid_ddoc_lang' },
  invalid_partitioned_option: { status: 400, error: 'invalid_partitioned_option' },
  no_usable_index: { status: 400, error: 'no_usable_index' },
  invalid_bookmark: { status: 400, error: 'invalid_bookmark' },
  invalid_index: {
    status: 400, error: 'invalid_index', reason: 'You must specify an index with the `use_index` parameter.',
  },
  invalid_empty_string: {
    status: 400, error: 'invalid_empty_string', reason: 'Index name or ddoc cannot be empty string',
  },
  unsupported_mixed_sort: {
    status: 400, error: 'unsupported_mixed_sort',
    reason: 'Sorts currently only support a single direction for all fields.',
  },
  error_saving_ddoc: {
    status: 500, error: 'error_saving_ddoc',
    reason: 'Encountered a conflict while saving the design document.',
  },
  invalid_list_index_params: {
    status: 500, error: 'invalid_list_index_params', reason: 'Index parameter ranges: limit > 1, skip > 0',
  },
  index_service_missing: { status: 503, error: 'required index service unavailable' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorName = keyof typeof errorRegistry

/** An error that a client sees as status, `error` and `reason`. */
export class ApiError extends Error {
  readonly status: number
  readonly error: string
  readonly reason: string
  /** Extra response headers, such as Allow or Retry-After. */
  readonly headers: Readonly<Record<string, string>>
  /** Members that the response's body has in addition to `error` and `reason`. */
  readonly members: Readonly<Record<string, unknown>>

  /**
   * @param kind name of an entry of the registry; or an entry, for errors that functions of design documents name
   * @param reason replaces the entry's default reason; it should name the refused value, the limit and what to do
   */
  constructor(
    kind: ErrorName | ErrorEntry, reason?: string,
    options: { headers?: Record<string, string>; members?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    const entry: ErrorEntry = typeof kind === 'string' ? errorRegistry[kind] : kind
    super(reason ?? entry.reason ?? entry.error, { cause: options.cause })
    this.name = 'ApiError'
    this.status = entry.status
    this.error = entry.error
    this.reason = this.message
    this.headers = options.headers ?? {}
    this.members = options.members ?? {}
  }
}
