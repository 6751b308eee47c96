import { lastKey } from '@sectional/runtime'
import type { Store } from '@sectional/runtime'
import { scanEntries } from '../records/entry-scan.ts'
import { directoryKeys, IndexKeys } from './index-keys.ts'
import { decodeDirectoryRecord } from './index-records.ts'

/** The contents of a store of indexes. */
export interface IndexStoreContents {
  /** The history of the replica (`owner`) and the id of each index. */
  readonly indexes: readonly { readonly owner: string; readonly id: string }[]
  /** The keys that belong neither to an index nor to one whose space is being reclaimed. */
  readonly strays: readonly string[]
}

/** Reads the whole store of indexes of a node (`indexStoreName`), to inspect it. */
export async function readIndexStore(store: Store): Promise<IndexStoreContents> {
  const indexes: { owner: string; id: string }[] = []
  const prefixes = new Set([0])
  for await (const page of scanEntries(store, directoryKeys.indexes())) {
    for (const [key, value] of page) {
      indexes.push(directoryKeys.readIndex(key))
      prefixes.add(decodeDirectoryRecord(value).prefix)
    }
  }
  for await (const page of scanEntries(store, directoryKeys.allDropped())) {
    for (const [key] of page) prefixes.add(directoryKeys.readDropped(key))
  }
  const strays: string[] = []
  for await (const page of scanEntries(store, { gte: '', lt: lastKey })) {
    strays.push(...page.map(([key]) => key).filter(key => !prefixes.has(IndexKeys.prefixOf(key))))
  }
  return { indexes, strays }
}
