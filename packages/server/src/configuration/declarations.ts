/** All options of a node: the combined tables of the packages. */
import {
  controlDeclarations, databaseDeclarations, databaseEventsDeclarations, designDocumentDeclarations,
} from '@sectional/cluster'
import type { Option } from '@sectional/core/options'
import { httpDeclarations, parseTokenKey, tokenKeysSection } from '@sectional/http'
import { connectionDeclarations, sandboxDeclarations } from '@sectional/runtime'
import { compactionDeclarations, indexDeclarations, reduceDeclarations } from '@sectional/shard'
import { nodeDeclarations, processDeclarations } from './node-declarations.ts'

const tables = [
  nodeDeclarations, controlDeclarations, databaseDeclarations, httpDeclarations, databaseEventsDeclarations,
  designDocumentDeclarations, reduceDeclarations,
  compactionDeclarations, indexDeclarations, processDeclarations, connectionDeclarations, sandboxDeclarations,
]

/** A section with arbitrary keys. */
interface OpenSection {
  readonly help: string
  /** Whether its values are secrets. */
  readonly secret: boolean
  /** @throws Error whose message says what is allowed */
  check(key: string, text: string): void
}

/** The sections with arbitrary keys. Any other unknown section or key is kept but has no effect. */
export const openSections: Readonly<Record<string, OpenSection>> = {
  admins: {
    help: 'Server administrators: name = password. A password in plain text is replaced by its hash when the node '
      + 'starts or reloads its configuration.',
    secret: false,
    check: () => {},
  },
  [tokenKeysSection]: {
    help: 'Keys of signed tokens: hmac:ID = a secret in Base64; rsa:ID, ec:ID or eddsa:ID = a public key in PEM '
      + 'format, in one line with \\n for each end of a line. The ID _default is for tokens that name no key.',
    secret: true,
    check: (key, text) => { parseTokenKey(key, text) },
  },
}

/** Each option once, in the order of the tables; several tables may contain the same option. */
export const declaredOptions: readonly Option<unknown>[] =
  [...new Set<Option<unknown>>(tables.flatMap(table => Object.values(table)))]

/** Section -> its options. */
export const declaredSections: ReadonlyMap<string, readonly Option<unknown>[]> =
  Map.groupBy(declaredOptions, ({ section }) => section)

export function findOption(section: string, key: string): Option<unknown> | undefined {
  return declaredSections.get(section)?.find(declared => declared.key === key)
}
