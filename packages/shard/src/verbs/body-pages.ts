import type { RevisionContent } from '../records/body-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'

/** A row as it was read from its record. A row without leaves has no body. */
export interface ReadRow { readonly id: string; readonly leaves: readonly StoredLeaf[] }

/**
 * Reads the bodies of the rows' winners, and returns the rows in pages of bounded size.
 *
 * @param pageBytes a page ends with the row whose body exceeds this many bytes
 * @param show makes the row of the reply; it gets no content for a row without a body, or when the body was removed
 * after the row was read
 */
export async function* withBodies<Read extends ReadRow, Row>(
  records: ShardRecords, rows: readonly Read[], show: (row: Read, content?: RevisionContent) => Row, pageBytes: number,
): AsyncGenerator<readonly Row[]> {
  for (let start = 0; start < rows.length;) {
    let end = start
    const sequences: number[] = []
    for (let bytes = 0; end < rows.length && bytes <= pageBytes; end++) {
      const winner = rows[end]!.leaves[0]
      if (winner === undefined) continue
      bytes += winner.bodyBytes
      sequences.push(winner.bodySequence)
    }
    const bodies = await records.bodies(sequences)
    const page: Row[] = []
    for (let body = 0; start < end; start++) {
      const row = rows[start]!
      const content = row.leaves.length === 0 ? undefined : bodies[body++]
      if (content === undefined && row.leaves.length > 0) records.assertGone(row.id, row.leaves[0]!.bodySequence)
      page.push(show(row, content))
    }
    yield page
  }
}
