/** Options of databases, of the node's role for clients, and of generated identifiers. */
import { databaseDeclarations } from '@sectional/cluster'
import { choice, flag, integer, option, optionalText, text, type OptionType } from '@sectional/core/options'
import { parseSettingNames, type SettingName } from './setting-names.ts'

const settingListProblem = 'only a list like [{section, key}, {section, *}] is allowed'

const settingList: OptionType<readonly SettingName[]> = {
  kind: 'list of {section, key}',
  parse: given => {
    const names = given.trim() === '' ? [] : parseSettingNames(given)
    if (names === null) throw new Error(settingListProblem)
    return names
  },
  format: names => `[${names.map(({ section, key }) => `{${section}, ${key}}`).join(', ')}]`,
}

export const serverDeclarations = {
  shardsPerDatabase: databaseDeclarations.shardsPerDatabase,
  replicasPerShard: databaseDeclarations.replicasPerShard,

  defaultSecurity: option('couchdb/default_security', choice('admin_only', 'admin_local', 'everyone'), {
    default: 'admin_only',
    effect: 'live',
    help: 'Who may use a new database before its _security is set. Only administrators may use new system databases, '
      + 'such as _users and _replicator.',
  }),

  usersSecurityEditable: option('couchdb/users_db_security_editable', flag, {
    default: false,
    effect: 'live',
    help: 'Allow changes of the _security of the database _users.',
  }),

  singleNode: option('couchdb/single_node', flag, {
    default: false,
    effect: 'restart',
    help: 'At the start, create those of the databases _users and _replicator that do not exist. It has no effect '
      + 'where the cluster has other nodes.',
  }),

  adminOnlyAllDatabases: option('chttpd/admin_only_all_dbs', flag, {
    default: true,
    effect: 'live',
    help: 'Only administrators may list databases.',
  }),

  databasesInfoMax: option('chttpd/max_db_number_for_dbs_info_req', integer({ min: 0, max: 1_000_000 }), {
    default: 100,
    effect: 'live',
    help: 'Maximum number of databases in one POST _dbs_info request.',
  }),

  /** Any value but `false` tells load balancers to send clients to other nodes. */
  maintenanceMode: option('couchdb/maintenance_mode', choice('false', 'true', 'nolb'), {
    default: 'false',
    effect: 'live',
    help: 'With true or nolb, /_up answers 404, so that load balancers send no requests to the node, and changes feeds '
      + 'on the node end.',
  }),

  /** Maximum, and default, milliseconds that a changes feed without heartbeats waits. */
  changesTimeoutMs: option('chttpd/changes_timeout', integer({ min: 1, max: 86_400_000, unit: 'milliseconds' }), {
    default: 60_000,
    effect: 'live',
    help: 'A changes feed without heartbeats ends after this time without a change; a client may ask for less.',
  }),

  uuidAlgorithm: option('uuids/algorithm', choice('sequential', 'random', 'utc_random', 'utc_id', 'uuid_v7'), {
    default: 'sequential',
    effect: 'live',
    help: 'Algorithm for identifiers, also for those of documents that are posted without one. utc_id is unique on one '
      + 'node only.',
  }),

  uuidSuffix: option('uuids/utc_id_suffix', text, {
    default: '',
    effect: 'live',
    help: 'Text that follows the time in identifiers of utc_id; it must differ between nodes.',
  }),

  uuidsMax: option('uuids/max_count', integer({ min: 1, max: 100_000 }), {
    default: 1000,
    effect: 'live',
    help: 'Maximum of the parameter count of GET /_uuids.',
  }),

  configWhitelist: option('chttpd/config_whitelist', optionalText, {
    default: undefined,
    effect: 'live',
    clusterWide: true,
    help: 'Options that the API may change, as [{section, key}, ...]. Unset: all except those of the blocked sections.',
    defect: given => given.trim() === '' || parseSettingNames(given) !== null ? null : settingListProblem,
  }),

  configBlacklist: option('chttpd/config_blacklist', settingList, {
    default: [],
    effect: 'live',
    filesOnly: true,
    help: 'Options that the API must not change, as [{section, key}, ...], in addition to those that are changed in '
      + 'files only. The key * stands for all keys of a section.',
  }),
}
