/** All options of a node: the combined tables of the packages. */
import {
  backgroundIndexDeclarations, controlDeclarations, databaseDeclarations, databaseEventsDeclarations,
  designDocumentDeclarations, userDatabasesDeclarations,
} from '@sectional/cluster'
import type { Option } from '@sectional/core/options'
import {
  checkCredentialName, checkCrossOriginHost, crossOriginHost, httpDeclarations, parseTokenKey, parseVirtualHost,
  presentName, tokenKeyDefect, tokenKeysSection, virtualHostsSection,
} from '@sectional/http'
import { connectionDeclarations, sandboxDeclarations } from '@sectional/runtime'
import { compactionDeclarations, indexDeclarations, reduceDeclarations } from '@sectional/shard'
import { httpsDeclarations } from './https-declarations.ts'
import { nodeDeclarations, processDeclarations } from './node-declarations.ts'

const tables = [
  nodeDeclarations, controlDeclarations, databaseDeclarations, httpDeclarations, httpsDeclarations,
  databaseEventsDeclarations, userDatabasesDeclarations, designDocumentDeclarations, reduceDeclarations,
  compactionDeclarations, indexDeclarations, backgroundIndexDeclarations, processDeclarations, connectionDeclarations,
  sandboxDeclarations,
]

/** A section with arbitrary keys. A change over HTTP applies to all nodes, as for an option that is `clusterWide`. */
interface OpenSection {
  readonly help: string
  /** Whether its values are secrets, which the API does not show. */
  readonly secret: boolean
  /** Whether its values are logged when they change. */
  readonly logged: boolean
  /** @throws Error whose message says what is allowed */
  check(key: string, text: string): void
  /** As that of an option. */
  defect?(key: string, text: string): string | null
}

/**
 * The sections with arbitrary keys, and `cors:HOST` for those of all hosts. Any other unknown section or key is kept,
 * but has no effect.
 */
export const openSections: Readonly<Record<string, OpenSection>> = {
  admins: {
    help: 'Server administrators: name = password. A password in plain text is replaced by its hash when the node '
      + 'starts or reloads its configuration. A name must not have a colon or a control character. A change over HTTP '
      + 'applies to all nodes.',
    secret: false,
    logged: false,
    check: checkCredentialName,
  },
  [tokenKeysSection]: {
    help: 'Keys of signed tokens: hmac:ID = a secret of at least 16 bytes in Base64; rsa:ID, ec:ID or eddsa:ID = a '
      + 'public key in PEM format, in one line with \\n for each end of a line. The ID _default is for tokens that '
      + 'name no key. A change over HTTP applies to all nodes.',
    secret: true,
    logged: false,
    check: (key, text) => { parseTokenKey(key, text) },
    defect: tokenKeyDefect,
  },
  [virtualHostsSection]: {
    help: 'Virtual hosts: host = /path. A request to the host has this path before its own. The name may have a port '
      + '(host:5984) and a path, which is replaced. *.example.org is every host below example.org, and :name stands '
      + 'for one part of the host; both can be used in the path (:name.example.org = /:name). The rule with the most '
      + 'fixed parts applies. A change over HTTP applies to all nodes.',
    secret: false,
    logged: true,
    check: (key, text) => { parseVirtualHost(key, text) },
  },
  'cors:HOST': {
    help: 'Options of [cors] for the requests to one host, which is written without a port: [cors:app.example.org]. An '
      + 'option that is not set has the value of [cors]. A change over HTTP applies to all nodes.',
    secret: false,
    logged: true,
    check: checkCrossOriginHost,
  },
}

/** Returns undefined for a section whose keys are declared, and for one that is unknown. */
export function findOpenSection(section: string): OpenSection | undefined {
  if (crossOriginHost(section) !== undefined) return openSections['cors:HOST']
  return Object.hasOwn(openSections, section) ? openSections[section] : undefined
}

/** Each option once, in the order of the tables; several tables may contain the same option. */
export const declaredOptions: readonly Option<unknown>[] =
  [...new Set<Option<unknown>>(tables.flatMap(table => Object.values(table)))]

/** Section -> its options. */
export const declaredSections: ReadonlyMap<string, readonly Option<unknown>[]> =
  Map.groupBy(declaredOptions, ({ section }) => section)

/** Returns the option of this name, or the one that had it in earlier versions. */
export function findOption(section: string, key: string): Option<unknown> | undefined {
  const found = declaredSections.get(section)?.find(declared => declared.key === key)
  const present = found === undefined ? presentName(section, key) : null
  return present === null ? found : findOption(present.section, present.key)
}
