/** All options of a node: the combined tables of the packages. */
import {
  controlDeclarations, databaseDeclarations, databaseEventsDeclarations, designDocumentDeclarations,
} from '@sectional/cluster'
import type { Option } from '@sectional/core/options'
import { httpDeclarations } from '@sectional/http'
import { connectionDeclarations, sandboxDeclarations } from '@sectional/runtime'
import { compactionDeclarations, indexDeclarations, reduceDeclarations } from '@sectional/shard'
import { nodeDeclarations, processDeclarations } from './node-declarations.ts'

const tables = [
  nodeDeclarations, controlDeclarations, databaseDeclarations, httpDeclarations, databaseEventsDeclarations,
  designDocumentDeclarations, reduceDeclarations,
  compactionDeclarations, indexDeclarations, processDeclarations, connectionDeclarations, sandboxDeclarations,
]

/** Sections with arbitrary keys. Any other unknown section or key is kept but has no effect. */
export const openSections = {
  admins: 'Server administrators: name = password. A password in plain text is replaced by its hash when the node '
    + 'starts or reloads its configuration.',
} as const

/** Each option once, in the order of the tables; several tables may contain the same option. */
export const declaredOptions: readonly Option<unknown>[] =
  [...new Set<Option<unknown>>(tables.flatMap(table => Object.values(table)))]

/** Section -> its options. */
export const declaredSections: ReadonlyMap<string, readonly Option<unknown>[]> =
  Map.groupBy(declaredOptions, ({ section }) => section)

export function findOption(section: string, key: string): Option<unknown> | undefined {
  return declaredSections.get(section)?.find(declared => declared.key === key)
}
