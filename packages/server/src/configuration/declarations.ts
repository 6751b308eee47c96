/** Every option of a node, once: what it means, its default, its type and when a change acts (api.md C). */
import { addressOption, choiceOption, flagOption, integerOption, listOption, textOption, unsetOption, type Option } from './option.ts'

const mebibyte = 1024 * 1024
const bytesMax = 2 ** 46
export const secretLengthMin = 32

export const declarations = {
  node: {
    name: textOption({ default: 'node1@127.0.0.1', effect: 'restart', help: 'Name of this node, unique in its cluster and fixed for the life of its data.' }),
    zone: textOption({ default: '', effect: 'restart', help: 'Zone that this node stands in.' }),
  },
  cluster: {
    seedlist: listOption({ default: '', effect: 'restart', help: 'Cluster addresses (host:port) of nodes to form or join a cluster with, the same list on every node. Empty: a cluster of one.' }),
    secret: textOption({ default: '', effect: 'restart', secret: true, help: `What the nodes of one cluster prove to each other: at least ${secretLengthMin} characters, the same on every node. Needed as soon as seedlist names another node.` }),
    bind_address: textOption({ default: '127.0.0.1', effect: 'restart', help: 'Where the cluster listener accepts other nodes.' }),
    port: integerOption({ default: '15984', min: 0, max: 65535, effect: 'restart', help: 'Port of the cluster listener.' }),
    formation_grace_ms: integerOption({ default: '2000', min: 0, max: 60_000, effect: 'restart', help: 'Milliseconds that the first seed waits, when its disk is empty, for members that know it before it forms a new cluster. A cluster of one without a secret does not wait.' }),
    advertised_address: addressOption({ default: '', effect: 'restart', help: 'host:port under which other nodes reach the cluster listener. Empty: bind_address and port.' }),
    tls_key_file: textOption({ default: '', effect: 'restart', help: 'PEM file with this node\'s private key, relative to the folder of its configuration. With tls_cert_file and tls_ca_file: links between nodes are encrypted, and both ends must show a certificate. On every node or on none.' }),
    tls_cert_file: textOption({ default: '', effect: 'restart', help: 'PEM file with this node\'s certificate, for the host that other nodes dial.' }),
    tls_ca_file: textOption({ default: '', effect: 'restart', help: 'PEM file with the authority that signs the certificates of all nodes.' }),
    q: integerOption({ default: '8', min: 1, max: 256, effect: 'live', help: 'Shards of a new database.' }),
    n: integerOption({ default: '3', min: 1, max: 32, effect: 'live', help: 'Replicas of each shard of a new database; fewer stand while fewer nodes exist.' }),
  },
  couchdb: {
    database_dir: textOption({ default: './data', effect: 'restart', help: 'Folder of the node\'s data, relative to the folder of its configuration.' }),
    maintenance_mode: choiceOption({ default: 'false', choices: ['false', 'true', 'nolb'], effect: 'live', help: 'true and nolb: /_up answers 404, so that a load balancer leaves the node out, and changes feeds on it end.' }),
    max_document_size: integerOption({ default: '8000000', min: 1, max: bytesMax, infinite: true, effect: 'live', help: 'Bytes of one document without its attachments; 50331648 at most, whatever is set.' }),
    max_attachment_size: integerOption({ default: '1073741824', min: 1, max: bytesMax, infinite: true, effect: 'live', help: 'Bytes of one attachment as it is uploaded, and of one that comes as gzip when it is decoded.' }),
    max_document_id_length: integerOption({ default: 'infinity', min: 1, max: bytesMax, infinite: true, effect: 'live', help: 'Bytes of a document id; 65536 at most, whatever is set.' }),
    max_bulk_docs_count: integerOption({ default: '50000', min: 1, max: 10_000_000, infinite: true, effect: 'live', help: 'Documents of one _bulk_docs; more get 413. Each takes about 2 KiB of memory besides its bytes while the request runs.' }),
    max_bulk_get_count: integerOption({ default: '50000', min: 1, max: 10_000_000, infinite: true, effect: 'live', help: 'Documents of one _bulk_get, and documents and revisions of one _revs_diff, _missing_revs or _purge; more get 413.' }),
    users_db_security_editable: flagOption({ default: 'false', effect: 'live', help: 'Let the _security of _users be changed.' }),
    max_partition_size: integerOption({ default: '10737418240', min: 0, max: bytesMax, infinite: true, effect: 'live', help: 'Bytes of JSON in one partition of a partitioned database, from which on it only takes deletions; 0: no limit.' }),
    default_security: choiceOption({ default: 'admin_only', choices: ['admin_only', 'admin_local', 'everyone'], effect: 'live', help: 'Who may use a new database before its _security is set.' }),
  },
  chttpd: {
    bind_address: textOption({ default: '127.0.0.1', effect: 'restart', help: 'Where the HTTP API listens.' }),
    port: integerOption({ default: '5984', min: 0, max: 65535, effect: 'restart', help: 'Port of the HTTP API.' }),
    max_http_request_size: integerOption({ default: '4294967296', min: 1, max: bytesMax, infinite: true, effect: 'live', help: 'Bytes of one request body; limits/body_bytes holds too.' }),
    max_uri_length: integerOption({ default: 'infinity', min: 1, max: bytesMax, infinite: true, effect: 'live', help: 'Characters of a request target; longer ones get 414.' }),
    changes_timeout: integerOption({ default: '60000', min: 1, max: 86_400_000, effect: 'live', help: 'Milliseconds after which a changes feed without heartbeats that nothing happens in ends; a client may ask for less.' }),
    max_db_number_for_dbs_info_req: integerOption({ default: '100', min: 0, max: 1_000_000, effect: 'live', help: 'Databases in one POST _dbs_info.' }),
    admin_only_all_dbs: flagOption({ default: 'true', effect: 'live', help: 'Only administrators may list databases.' }),
    require_valid_user: flagOption({ default: 'false', effect: 'live', help: 'Refuse every anonymous request.' }),
    require_valid_user_except_for_up: flagOption({ default: 'false', effect: 'live', help: 'Let anonymous requests to /_up through all the same.' }),
    decode_plus_to_space: flagOption({ default: 'true', effect: 'live', help: 'Read + as a blank in database names and document ids of a path.' }),
    json_default_type: textOption({ default: 'text/plain;charset=utf-8', effect: 'live', help: 'Content type of JSON for clients whose Accept does not name application/json.' }),
    server_header_versions: flagOption({ default: 'true', effect: 'live', help: 'Put versions into the Server header.' }),
    prefer_minimal: unsetOption({ effect: 'live', help: 'Headers that stay with Prefer: return=minimal, comma separated. Unset: CouchDB\'s list.' }),
    config_whitelist: unsetOption({ effect: 'live', help: 'Options that the API may change, as [{section, key}, ...]. Unset: all but the blocked sections.' }),
    'WWW-Authenticate': unsetOption({ effect: 'live', help: 'Value of that header in 401 answers. Unset: none, so that browsers show no login box.' }),
    enable_cors: flagOption({ default: 'false', effect: 'live', help: 'Answer cross-origin requests of browsers by the section cors.' }),
  },
  cors: {
    origins: textOption({ default: '', effect: 'live', help: 'Origins that may read answers, comma separated, scheme and port included; * is every one.' }),
    credentials: flagOption({ default: 'false', effect: 'live', help: 'Let browsers send credentials; never together with the origin *.' }),
    headers: textOption({ default: '', effect: 'live', help: 'Further request headers that are allowed, comma separated.' }),
    methods: unsetOption({ effect: 'live', help: 'Allowed methods, comma separated. Unset: all.' }),
    exposed_headers: unsetOption({ effect: 'live', help: 'Headers that scripts may read, comma separated. Unset: CouchDB\'s list.' }),
    max_age: integerOption({ default: '600', min: 0, max: 86_400, effect: 'live', help: 'Seconds for which browsers may remember a preflight.' }),
  },
  chttpd_auth: {
    iterations: integerOption({ default: '600000', min: 1, max: 1_000_000_000, effect: 'live', help: 'Rounds of PBKDF2 for passwords hashed from now on.' }),
    max_iterations: integerOption({ default: '1000000000', min: 1, max: 1_000_000_000, effect: 'live', help: 'Password hashes that ask for more rounds are refused.' }),
    secret: textOption({ default: '', effect: 'live', secret: true, help: 'What session cookies are signed with, the same on every node. Empty: the cluster makes one of its own at the first login. After a change the one before stays valid for timeout.' }),
    timeout: integerOption({ default: '600', min: 1, max: 1_000_000_000, effect: 'live', help: 'Seconds after which an unused session cookie is worth nothing.' }),
    allow_persistent_cookies: flagOption({ default: 'true', effect: 'live', help: 'Let browsers keep the session cookie when they are closed.' }),
    cookie_domain: textOption({ default: '', effect: 'live', help: 'Domain of the session cookie. Empty: this host alone.' }),
    same_site: textOption({ default: '', effect: 'live', help: 'SameSite of the session cookie: none, lax or strict; anything else leaves it out.' }),
    hash_algorithms: textOption({ default: 'sha256, sha', effect: 'live', help: 'Digests of session cookies that are accepted; the first one signs. Known: sha, sha224, sha256, sha384, sha512.' }),
    authentication_db: textOption({ default: '_users', effect: 'live', help: 'Database of the users, as GET /_session names it.' }),
  },
  attachments: {
    compression_level: integerOption({ default: '8', min: 0, max: 9, effect: 'live', help: 'How small attachments of compressible types are made; 0: they are stored as they come.' }),
    compressible_types: textOption({ default: 'text/*, application/javascript, application/json, application/xml', effect: 'live', help: 'Content types of attachments that are stored compressed, separated by commas.' }),
  },
  csp: {
    attachments_enable: flagOption({ default: 'true', effect: 'live', help: 'Send attachments with a Content-Security-Policy.' }),
    attachments_header_value: textOption({ default: 'sandbox', effect: 'live', help: 'That policy.' }),
  },
  compaction: {
    replaced_bytes: integerOption({ default: String(mebibyte), min: 1, max: bytesMax, infinite: true, effect: 'restart', help: 'A shard is compacted by itself when replaced revisions hold this many bytes of bodies; infinity: only on request.' }),
    replaced_percent: integerOption({ default: '50', min: 0, max: 100, effect: 'restart', help: '... and this part of all bodies.' }),
    check_interval_ms: integerOption({ default: '30000', min: 1, max: 86_400_000, effect: 'restart', help: 'Milliseconds from a write that makes a shard worth it to its compaction.' }),
    rest_percent: integerOption({ default: '50', min: 0, max: 99, effect: 'restart', help: 'Part of its time that a compaction rests and leaves to requests.' }),
  },
  purge: {
    max_revisions_number: integerOption({ default: 'infinity', min: 1, max: 1_000_000_000, infinite: true, effect: 'live', help: 'Revisions of one _purge.' }),
  },
  global_changes: {
    update_db: flagOption({ default: 'true', effect: 'live', help: 'Record for _db_updates which databases are created, written to and deleted, from the first time that somebody asks for it.' }),
  },
  uuids: {
    algorithm: choiceOption({ default: 'sequential', choices: ['sequential', 'random', 'utc_random', 'utc_id', 'uuid_v7'], effect: 'live', help: 'How identifiers are made, those of documents that are posted without one too. utc_id is unique on one node only.' }),
    utc_id_suffix: textOption({ default: '', effect: 'live', help: 'What stands behind the time in identifiers of utc_id: another one on every node.' }),
    max_count: integerOption({ default: '1000', min: 1, max: 100_000, effect: 'live', help: 'Largest count of GET /_uuids.' }),
  },
  log: {
    level: choiceOption({ default: 'info', choices: ['debug', 'info', 'warn', 'error', 'silent'], effect: 'restart', help: 'Least serious lines that are logged, as JSON to standard output.' }),
    requests: choiceOption({ default: 'debug', choices: ['info', 'debug', 'none'], effect: 'restart', help: 'Level of the line written for each request.' }),
  },
  limits: {
    concurrent_requests: integerOption({ default: '4096', min: 1, max: 1_000_000, effect: 'restart', help: 'Requests worked on at once; more get 503 with Retry-After.' }),
    connections: integerOption({ default: '32768', min: 1, max: 10_000_000, effect: 'restart', help: 'HTTP connections at once; fewer where the process may open few descriptors (ulimit -n), since half of them, 3000 at most, are kept for storage and links. Beyond it the connection that is idle for longest is closed; where all are busy, a new one gets 503 with Retry-After, and only /_up is answered.' }),
    connections_per_address: integerOption({ default: '75', min: 1, max: 100, effect: 'restart', help: 'Percent of the connections that clients of one address may hold; 100 where all of them come through one load balancer.' }),
    body_grace_ms: integerOption({ default: '30000', min: 100, max: 86_400_000, effect: 'restart', help: 'Milliseconds that a request body may take, and a second more for each body_bytes_per_second that have come; slower ones get 408.' }),
    anonymous_body_grace_ms: integerOption({ default: '5000', min: 100, max: 86_400_000, effect: 'restart', help: 'The same for clients that are not logged in, such as those that are about to log in.' }),
    body_bytes_per_second: integerOption({ default: '1024', min: 1, max: 2 ** 30, effect: 'restart', help: 'Bytes of a body that earn one more second.' }),
    anonymous_bodies: integerOption({ default: '1024', min: 1, max: 1_000_000, effect: 'restart', help: 'Requests with a body of clients that are not logged in, worked on at once; more get 503 with Retry-After.' }),
    changes_feeds: integerOption({ default: '20000', min: 1, max: 10_000_000, effect: 'restart', help: 'Changes feeds that wait at once, beside those requests; more get 503 with Retry-After.' }),
    body_bytes: integerOption({ default: String(128 * mebibyte), min: 1024, max: 2 ** 31, effect: 'restart', help: 'Bytes of one request body after decompression; more get 413.' }),
    buffered_body_bytes: integerOption({ default: String(256 * mebibyte), min: 1024, max: 2 ** 40, effect: 'restart', help: 'Bytes of all request bodies held at once, and of all large answers that clients have not taken yet; more get 503 with Retry-After.' }),
    gzip_ratio: integerOption({ default: '100', min: 1, max: 2000, effect: 'restart', help: 'How many times its size a gzip request body may become when that is more than 4 MiB; more get 413.' }),
    json_values: integerOption({ default: '500000', min: 1000, max: 100_000_000, effect: 'restart', help: 'Values and names of members in the JSON of one request that is no document (keys, _bulk_get, _revs_diff, selectors, ...); more get 413.' }),
    parsed_bytes: integerOption({ default: String(512 * mebibyte), min: mebibyte, max: 2 ** 40, effect: 'restart', help: 'Estimated memory for what the bodies of all running requests become when they are parsed; a request beyond it gets 503 with Retry-After unless it is the only large one.' }),
    batched_bytes: integerOption({ default: String(16 * mebibyte), min: 0, max: 2 ** 40, effect: 'restart', help: 'Bytes of documents accepted with batch=ok and not yet written.' }),
    batched_documents: integerOption({ default: '1000', min: 0, max: 1_000_000, effect: 'restart', help: 'Documents accepted with batch=ok and not yet written.' }),
    credentials: integerOption({ default: '10000', min: 0, max: 10_000_000, effect: 'restart', help: 'Verified credentials kept in memory.' }),
    password_checks: integerOption({ default: '2', min: 1, max: 64, effect: 'restart', help: 'Password checks at once.' }),
    shutdown_grace_ms: integerOption({ default: '5000', min: 0, max: 600_000, effect: 'restart', help: 'Milliseconds that running requests may take to end when the node stops.' }),
  },
} as const

/** Sections whose keys are made by the administrator; every other unknown section or key is kept and has no effect. */
export const openSections = { admins: 'Server administrators: name = password. Plain text is replaced by its hash when the node starts.' } as const

export type Declarations = typeof declarations

/** Parsed values of one section. */
export type SectionOptions<Section extends keyof Declarations> = {
  readonly [Key in keyof Declarations[Section]]: Declarations[Section][Key] extends Option<infer Value> ? Value : never
}

/** Parsed values of every option. */
export type Options = { readonly [Section in keyof Declarations]: SectionOptions<Section> }

export interface DeclaredOption { readonly section: string; readonly key: string; readonly option: Option<unknown> }

export const declaredOptions: readonly DeclaredOption[] = Object.entries(declarations).flatMap(([section, keys]) =>
  Object.entries(keys).map(([key, option]) => ({ section, key, option })))

export function findOption(section: string, key: string): Option<unknown> | undefined {
  return declaredOptions.find(declared => declared.section === section && declared.key === key)?.option
}
