import type { RevisionContent } from '../records/body-record.ts'
import type { ShardRecords } from '../shard-records.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'

/** A page of rows with bodies ends with the row that goes beyond this many bytes. */
const pageBytesMax = 1024 * 1024

/** Adds the bodies of the leaves to rows, in pages of bounded bytes; one that has gone since the row was read is left out. */
export async function* withBodies<Row extends { readonly id: string }>(records: ShardRecords, rows: readonly { readonly row: Row; readonly leaf: StoredLeaf | undefined }[]): AsyncGenerator<readonly (Row & Partial<RevisionContent>)[]> {
  for (let start = 0; start < rows.length;) {
    let end = start
    for (let bytes = 0; end < rows.length && bytes <= pageBytesMax; end++) bytes += rows[end]!.leaf?.bodyBytes ?? 0
    const page = rows.slice(start, end)
    const sequences: number[] = []
    for (const { leaf } of page) if (leaf !== undefined) sequences.push(leaf.bodySequence)
    const bodies = await records.bodies(sequences)
    let next = 0
    yield page.map(({ row, leaf }) => {
      if (leaf === undefined) return row
      const body = bodies[next++]
      if (body !== undefined) return { ...row, ...body }
      records.assertGone(row.id, leaf.bodySequence)
      return row
    })
    start = end
  }
}
