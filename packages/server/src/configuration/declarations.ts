/** All options of a node: the tables of the packages, put together. */
import { controlDeclarations, databaseDeclarations, databaseEventsDeclarations } from '@sectional/cluster'
import type { Option } from '@sectional/core/options'
import { httpDeclarations } from '@sectional/http'
import { connectionDeclarations } from '@sectional/runtime'
import { compactionDeclarations } from '@sectional/shard'
import { nodeDeclarations, processDeclarations } from './node-declarations.ts'

const tables = [
  nodeDeclarations, controlDeclarations, databaseDeclarations, httpDeclarations, databaseEventsDeclarations,
  compactionDeclarations, processDeclarations, connectionDeclarations,
]

/** Sections with freely chosen keys. Any other unknown section or key is kept and has no effect. */
export const openSections = {
  admins: 'Server administrators: name = password. A password in plain text is replaced by its hash when the node '
    + 'starts.',
} as const

/** Each option once, in the order of the tables; a table may show options of another one. */
export const declaredOptions: readonly Option<unknown>[] =
  [...new Set<Option<unknown>>(tables.flatMap(table => Object.values(table)))]

/** section -> its options. */
export const declaredSections: ReadonlyMap<string, readonly Option<unknown>[]> =
  Map.groupBy(declaredOptions, ({ section }) => section)

export function findOption(section: string, key: string): Option<unknown> | undefined {
  return declaredSections.get(section)?.find(declared => declared.key === key)
}
