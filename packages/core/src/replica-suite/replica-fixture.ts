import assert from 'node:assert/strict'
import { revisionHash } from '../revisions/revision-hash.ts'
import type {
  CallContext, DocumentEdit, DocumentRevision, DocumentSnapshot, EditOutcome, OpenedRevision, ReplicaErrorCode,
  ShardReplica,
} from '../contracts/shard-replica.ts'
import { ReplicaError } from '../contracts/shard-replica.ts'

/** A replica without documents, and the function that closes it. */
export interface OpenedReplica {
  readonly replica: ShardReplica
  close(): Promise<void>
}

export type MakeReplica = () => Promise<OpenedReplica>

/** Timeout of each call of the suite, in milliseconds. */
export const context: CallContext = { timeoutMs: 5000 }
export const revsLimit = 1000

/** The replica under test, with short methods for edits and queries. */
export class ReplicaFixture {
  readonly #make: MakeReplica
  #opened: OpenedReplica[] = []

  constructor(make: MakeReplica) {
    this.#make = make
  }

  async setUp(): Promise<void> {
    await this.another()
  }

  async tearDown(): Promise<void> {
    for (const { close } of this.#opened.splice(0)) await close()
  }

  get replica(): ShardReplica {
    const first = this.#opened[0]
    assert(first)
    return first.replica
  }

  /** Opens another replica of the same shard. It is closed together with the first one. */
  async another(): Promise<ShardReplica> {
    const opened = await this.#make()
    this.#opened.push(opened)
    return opened.replica
  }

  async edit(edit: DocumentEdit, limit = revsLimit): Promise<EditOutcome> {
    const [outcome] = await this.edits([edit], limit)
    assert(outcome)
    return outcome
  }

  async edits(edits: readonly DocumentEdit[], limit = revsLimit): Promise<readonly EditOutcome[]> {
    const reply = await this.replica.updateDocuments({ edits, revsLimit: limit }, context)
    assert.equal(reply.kind, 'decided')
    return reply.kind === 'decided' ? reply.outcomes : []
  }

  /** Makes an edit that must succeed, and returns the new revision. */
  async write(id: string, value: unknown = {}, parent: string | null = null): Promise<string> {
    return revisionFrom(await this.edit(documentEdit(id, value, parent)))
  }

  /** Deletes a document and returns the tombstone's revision. */
  async delete(id: string, parent: string): Promise<string> {
    return revisionFrom(await this.edit(documentEdit(id, {}, parent, true)))
  }

  async store(...revisions: DocumentRevision[]): Promise<void> {
    await this.replica.storeRevisions({ revisions, revsLimit }, context)
  }

  async open(id: string, replica = this.replica): Promise<DocumentSnapshot> {
    const snapshot = await replica.openDocument({ id, body: true, tree: true }, context)
    assert(snapshot, `document ${id} exists`)
    return snapshot
  }

  /** Returns the revisions of the leaves, winner first. Tombstones have a minus sign as prefix. */
  async leaves(id: string, replica = this.replica): Promise<string[]> {
    return (await this.open(id, replica)).leaves.map(leaf => (leaf.deleted ? '-' : '') + leaf.revision)
  }

  async openRevisions(
    id: string, revisions: readonly string[] | 'leaves', latest = false,
  ): Promise<readonly OpenedRevision[]> {
    const [opened] = await this.replica.openRevisions([{ id, revisions, latest }], context)
    assert(opened)
    return opened
  }
}

export function documentEdit(id: string, value: unknown, parent: string | null = null, deleted = false): DocumentEdit {
  const body = bytes(JSON.stringify(value))
  return { id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }) }
}

/** Makes a revision as another replica would send it. `revision('a', 2, ['b', 'a'])` is 2-b, whose parent is 1-a. */
export function revision(
  id: string, start: number, ids: readonly string[], options: { deleted?: boolean; value?: unknown } = {},
): DocumentRevision {
  return {
    id, path: { start, ids }, deleted: options.deleted ?? false,
    body: bytes(JSON.stringify(options.value ?? { from: ids[0] })),
  }
}

export function revisionFrom(outcome: EditOutcome): string {
  assert.equal(outcome.kind, 'updated')
  return outcome.kind === 'updated' ? `${outcome.path.start}-${outcome.path.ids[0]}` : ''
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text, 'utf8')
}

export function text(body: Uint8Array | null | undefined): string | undefined {
  return body === null || body === undefined ? undefined : Buffer.from(body).toString('utf8')
}

/** Collects the rows of all pages. */
export async function collect<Row>(pages: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}

export async function assertFails(call: Promise<unknown>, code: ReplicaErrorCode): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert(error instanceof ReplicaError, `ReplicaError expected, not ${String(error)}`)
    assert.equal(error.code, code)
    return true
  })
}
