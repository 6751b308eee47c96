// Inside a package folders import in one direction, so that each can be read with what lies below it alone.
import { resolveImport } from './sources.mjs'

/**
 * What each folder of a package's `src` may import of the others; `.` means the files beside the folders. A new folder
 * gets a row. The package's index and the command line's entry may import everything, and no file imports them.
 */
export const folders = {
  core: {
    '.': [],
    'contracts': ['encoding'],
    'verb-values': ['contracts'],
    'encoding': [],
    'options': [],
    'time': [],
    'json': ['.', 'encoding'],
    'paging': [],
    'collation': ['.', 'json'],
    'reduces': ['.', 'collation', 'contracts', 'encoding', 'json'],
    'views': ['.', 'contracts', 'encoding', 'json', 'reduces'],
    'revisions': ['.', 'contracts', 'encoding', 'json'],
    'documents': ['.', 'contracts', 'encoding', 'json', 'revisions'],
    'selectors': ['.', 'collation', 'json'],
    'mango': ['.', 'collation', 'contracts', 'encoding', 'json', 'selectors', 'views'],
    'aggregates': ['.', 'collation', 'encoding', 'json', 'reduces', 'selectors'],
    'sharding': ['.', 'contracts'],
    'sequences': ['.', 'contracts', 'encoding', 'sharding', 'time'],
    'replica-memory': ['.', 'contracts', 'revisions', 'sequences', 'sharding'],
    'replica-suite': ['.', 'contracts', 'revisions', 'sequences', 'sharding'],
    'index-memory': ['aggregates', 'contracts', 'encoding', 'json', 'mango', 'selectors', 'views'],
    'index-suite': [
      'aggregates', 'collation', 'contracts', 'index-memory', 'json', 'mango', 'replica-memory', 'revisions', 'views',
    ],
  },
  runtime: {
    'clock': [],
    'random': [],
    'metrics': [],
    'files': [],
    'machine': ['clock'],
    'log': ['clock'],
    'compression': ['clock'],
    'tls': [],
    'network': ['clock', 'tls'],
    'http': ['clock', 'tls'],
    'sandbox': ['clock', 'log', 'metrics'],
    'blobs': ['files'],
    'storage': ['blobs', 'clock', 'files', 'metrics'],
    '.': [
      'blobs', 'clock', 'compression', 'files', 'http', 'log', 'machine', 'metrics', 'network', 'random', 'sandbox',
      'storage', 'tls',
    ],
  },
  shard: {
    'records': [],
    'calls': ['records'],
    'directory': ['records'],
    'blobs': ['records'],
    'reading': ['records'],
    'writing': ['calls', 'reading', 'records'],
    'verbs': ['reading', 'records', 'writing'],
    'compaction': ['calls', 'directory', 'reading', 'records', 'writing'],
    'scrub': ['reading', 'records', 'writing'],
    'engine': ['blobs', 'calls', 'compaction', 'directory', 'reading', 'records', 'verbs', 'writing'],
    'rebuild': ['directory', 'engine', 'reading', 'records', 'scrub'],
    'indexes': ['calls', 'records'],
    '.': [
      'blobs', 'calls', 'compaction', 'directory', 'engine', 'indexes', 'reading', 'rebuild', 'records', 'scrub',
      'writing',
    ],
  },
  rpc: {
    'schema': [],
    'frame': ['schema'],
    'link': ['frame', 'schema'],
    'shard': ['schema'],
    'indexes': ['schema', 'shard'],
    'shard-peer': ['indexes', 'link', 'schema', 'shard'],
    'control': ['link', 'schema'],
    '.': ['control', 'frame', 'link', 'schema', 'shard', 'shard-peer'],
  },
  cluster: {
    'quorum': [],
    'consensus': ['quorum'],
    'control': ['consensus', 'quorum'],
    'contracts': ['control'],
    'replicas': ['contracts', 'control', 'quorum'],
    'shard-calls': ['contracts', 'control', 'quorum', 'replicas'],
    'attachments': ['contracts', 'control', 'quorum', 'replicas', 'shard-calls'],
    'documents': ['attachments', 'contracts', 'control', 'quorum', 'replicas', 'shard-calls'],
    'feeds': ['contracts', 'control', 'replicas', 'shard-calls'],
    'views': ['contracts', 'control', 'replicas', 'shard-calls'],
    'find': ['contracts', 'control', 'replicas', 'shard-calls', 'views'],
    'design-documents': ['contracts', 'control', 'replicas', 'shard-calls'],
    'validation': ['contracts', 'control', 'documents', 'quorum', 'replicas', 'shard-calls'],
    'coordinator': [
      'attachments', 'contracts', 'control', 'documents', 'feeds', 'quorum', 'replicas', 'shard-calls', 'validation',
    ],
    '.': [
      'attachments', 'contracts', 'control', 'coordinator', 'design-documents', 'documents', 'feeds', 'find',
      'replicas', 'shard-calls', 'validation', 'views',
    ],
    'anti-entropy': ['control', 'quorum', 'replicas'],
    'database-events': ['contracts', 'control', 'replicas'],
    'upkeep': ['contracts', 'control', 'replicas'],
    'user-databases': ['contracts', 'control', 'validation'],
  },
  http: {
    'audit': [],
    'settings': ['audit'],
    'request': ['settings'],
    'tokens': ['request', 'settings'],
    'authentication': ['audit', 'request', 'settings', 'tokens'],
    'configuration': ['audit', 'authentication', 'settings'],
    'services': ['audit', 'authentication', 'request', 'settings'],
    'messages': ['request', 'services', 'settings'],
    'attachments': ['messages', 'request', 'services', 'settings'],
    'documents': ['attachments', 'messages', 'request', 'services', 'settings'],
    'databases': ['request', 'services'],
    'design-functions': ['authentication', 'databases', 'documents', 'messages', 'request', 'services', 'settings'],
    'lists': ['documents', 'messages', 'request', 'services'],
    'changes': ['attachments', 'design-functions', 'documents', 'lists', 'messages', 'request', 'services'],
    'find': ['documents', 'messages', 'request', 'services'],
    'views': ['documents', 'find', 'lists', 'messages', 'request', 'services'],
    'users': ['audit', 'authentication', 'documents', 'messages', 'request', 'services', 'settings'],
    'pipeline': ['audit', 'authentication', 'messages', 'request', 'services', 'settings', 'users'],
    'routes': [
      'attachments', 'audit', 'authentication', 'changes', 'configuration', 'databases', 'design-functions',
      'documents', 'find', 'lists', 'messages', 'pipeline', 'request', 'services', 'settings', 'users', 'views',
    ],
    '.': [
      'audit', 'authentication', 'configuration', 'messages', 'pipeline', 'request', 'routes', 'services', 'settings',
      'tokens', 'users',
    ],
  },
  server: {
    'configuration': [],
    'hosting': [],
    'information': ['hosting'],
    '.': ['configuration', 'hosting', 'information'],
    'command-line': ['.', 'configuration'],
  },
  simulator: {
    'history': [],
    'world': [],
    'models': ['world'],
    'views': ['world'],
    'plan': ['world'],
    'links': ['plan', 'world'],
    'workload': ['plan', 'world'],
    'checkers': ['history', 'views', 'workload', 'world'],
    'actions': ['checkers', 'plan', 'views', 'workload', 'world'],
    'faults': ['checkers', 'plan', 'world'],
    'drills': ['checkers', 'faults', 'history', 'models', 'views', 'world'],
    'swarm': ['actions', 'checkers', 'drills', 'faults', 'history', 'links', 'models', 'plan', 'workload', 'world'],
    'minimiser': ['swarm'],
    'scenarios': ['world'],
    'planted': ['scenarios', 'swarm', 'workload', 'world'],
    'command-line': ['minimiser', 'planted', 'swarm', 'world'],
  },
}

/** Folders whose files import no other file of the folder: what two of them share lies below them. */
const apart = new Set(['packages/cluster/src/coordinator', 'packages/http/src/routes'])

export function folderFindings(root, file) {
  const table = folders[file.packageName]
  const from = placeOf(file.path)
  if (table === undefined || from === undefined || isEntry(from)) return []
  if (table[from.folder] === undefined) {
    return [`${file.path}: ${from.folder} is not in the table of scripts/tidy/folders.mjs`]
  }
  return file.imports.flatMap(({ specifier }) => {
    const target = specifier.startsWith('.') ? resolveImport(root, file, specifier) : undefined
    const to = target === undefined ? undefined : placeOf(target)
    if (to === undefined || !target.startsWith(`packages/${file.packageName}/`)) return []
    if (isEntry(to)) return [`${file.path}: imports the index of its package`]
    if (to.folder !== from.folder) {
      const isBelow = table[from.folder].includes(to.folder)
      return isBelow ? [] : [`${file.path}: ${from.folder} may not import ${to.folder} (scripts/tidy/folders.mjs)`]
    }
    const isApart = apart.has(`packages/${file.packageName}/src/${from.folder}`)
    return isApart ? [`${file.path}: imports ${to.name} of the same folder; move what both need below them`] : []
  })
}

function isEntry({ folder, name }) {
  return folder === '.' && /^(index|cli)\.ts$/.test(name)
}

/** The folder of a package's sources that a file lies in, and the file's path in it. */
function placeOf(path) {
  const [, inSource] = /^packages\/[^/]+\/src\/(.+)$/.exec(path) ?? []
  if (inSource === undefined) return undefined
  const cut = inSource.indexOf('/')
  return cut < 0 ? { folder: '.', name: inSource } : { folder: inSource.slice(0, cut), name: inSource.slice(cut + 1) }
}
