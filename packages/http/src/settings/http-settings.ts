/** Settings that act on the next request, read from the configuration each time. */
import type { Configuration } from './configuration.ts'
import { travellingBytesMax } from './size-limits.ts'

export class HttpSettings {
  readonly #configuration: Configuration

  constructor(configuration: Configuration) {
    this.#configuration = configuration
  }

  text(section: string, key: string, fallback: string): string {
    return this.#configuration.get(section, key) ?? fallback
  }

  flag(section: string, key: string, fallback: boolean): boolean {
    const text = this.#configuration.get(section, key)
    return text === undefined ? fallback : text === 'true'
  }

  /** `infinity` and text that is no number of at least 0 give no limit and the fallback respectively. */
  integer(section: string, key: string, fallback: number): number {
    const text = this.#configuration.get(section, key)
    if (text === undefined) return fallback
    if (text === 'infinity') return Infinity
    return /^\d{1,15}$/.test(text) ? Number(text) : fallback
  }

  /** Bytes of a document without its attachments. */
  get documentBytesMax(): number { return Math.min(this.integer('couchdb', 'max_document_size', 8_000_000), travellingBytesMax) }
  /** Bytes of a document id. */
  get documentIdBytesMax(): number { return this.integer('couchdb', 'max_document_id_length', Infinity) }
  /** Bytes of one attachment as it comes, and decoded when it comes as gzip. */
  get attachmentBytesMax(): number { return this.integer('couchdb', 'max_attachment_size', 1_073_741_824) }
  get compressibleTypes(): string { return this.text('attachments', 'compressible_types', 'text/*, application/javascript, application/json, application/xml') }
  /** 0: attachments are not compressed. */
  get compressionLevel(): number { return Math.min(9, this.integer('attachments', 'compression_level', 8)) }
  get sandboxAttachments(): boolean { return this.flag('csp', 'attachments_enable', true) }
  get attachmentPolicy(): string { return this.text('csp', 'attachments_header_value', 'sandbox') }
  /** Revisions of one `_purge`. */
  get purgedRevisionsMax(): number { return this.integer('purge', 'max_revisions_number', Infinity) }
  /** Documents of one `_bulk_docs`. */
  get bulkDocumentsMax(): number { return this.integer('couchdb', 'max_bulk_docs_count', 50_000) }
  /** Documents of one `_bulk_get`; documents, and revisions, of one `_revs_diff`, `_missing_revs` or `_purge`. */
  get bulkGetMax(): number { return this.integer('couchdb', 'max_bulk_get_count', 50_000) }
  /** Bytes of JSON in one partition; 0 or less: no limit. */
  get partitionBytesMax(): number { return this.integer('couchdb', 'max_partition_size', 10_737_418_240) || Infinity }
  get requestBytesMax(): number { return this.integer('chttpd', 'max_http_request_size', 4_294_967_296) }
  get uriLengthMax(): number { return this.integer('chttpd', 'max_uri_length', Infinity) }
  get plusIsSpace(): boolean { return this.flag('chttpd', 'decode_plus_to_space', true) }
  get databasesInfoMax(): number { return this.integer('chttpd', 'max_db_number_for_dbs_info_req', 100) }
  get adminOnlyAllDatabases(): boolean { return this.flag('chttpd', 'admin_only_all_dbs', true) }
  get requireValidUser(): boolean { return this.flag('chttpd', 'require_valid_user', false) }
  get requireValidUserExceptForUp(): boolean { return this.flag('chttpd', 'require_valid_user_except_for_up', false) }
  get wwwAuthenticate(): string | undefined { return this.#configuration.get('chttpd', 'WWW-Authenticate') }
  /** Content type of JSON for clients that do not ask for `application/json`. */
  get jsonDefaultType(): string { return this.text('chttpd', 'json_default_type', 'text/plain;charset=utf-8') }
  get serverHeaderVersions(): boolean { return this.flag('chttpd', 'server_header_versions', true) }
  get preferMinimal(): string | undefined { return this.#configuration.get('chttpd', 'prefer_minimal') }
  /** Longest wait of a changes feed without heartbeats, and the default; ms. */
  get changesTimeoutMs(): number { return this.integer('chttpd', 'changes_timeout', 60_000) }
  get uuidsMax(): number { return this.integer('uuids', 'max_count', 1000) }
  get uuidAlgorithm(): string { return this.text('uuids', 'algorithm', 'sequential') }
  /** Behind the time in identifiers of `utc_id`. */
  get uuidSuffix(): string { return this.text('uuids', 'utc_id_suffix', '') }
  get maintenanceMode(): string { return this.text('couchdb', 'maintenance_mode', 'false') }
  /** Clients are to go to nodes that stay. */
  get isLeaving(): boolean { return this.maintenanceMode === 'true' || this.maintenanceMode === 'nolb' }
  get shardsPerDatabase(): number { return this.integer('cluster', 'q', 8) }
  get replicasPerShard(): number { return this.integer('cluster', 'n', 3) }
  get defaultSecurity(): string { return this.text('couchdb', 'default_security', 'admin_only') }
  get passwordIterations(): number { return this.integer('chttpd_auth', 'iterations', 600_000) }
  /** Life of a session cookie. */
  get sessionSeconds(): number { return this.integer('chttpd_auth', 'timeout', 600) }
  get persistentCookies(): boolean { return this.flag('chttpd_auth', 'allow_persistent_cookies', true) }
  get cookieDomain(): string { return this.text('chttpd_auth', 'cookie_domain', '') }
  get sameSite(): string { return this.text('chttpd_auth', 'same_site', '').toLowerCase() }
  get hashAlgorithms(): string { return this.text('chttpd_auth', 'hash_algorithms', 'sha256, sha') }
  get authenticationDatabase(): string { return this.text('chttpd_auth', 'authentication_db', '_users') }
}
