/**
 * A node that stops in order answers the calls of its peers that it has begun, and refuses the others as not done. The
 * clients of the other nodes must not notice this. Each test repeats one request and lets a node stop before its first
 * call, before its second one, and so on.
 */
import { createHash } from 'node:crypto'
import { documentHash, findRange } from '@sectional/core'
import type { ApiError, AttachmentRecord, DocumentRevision } from '@sectional/core'
import { expect } from 'chai'
import type {
  Coordinator, DocumentWrite, ListDocumentsOptions, WriteOptions, WriteOutcome,
} from '../../src/contracts/coordinator.ts'
import { revisionOf } from '../edit-world.ts'
import { bytes, edit, plainCall, ReplicaWorld, request, text } from '../replica-world.ts'

type Edit = DocumentWrite

const nodes = ['a', 'b', 'c']
const first = edit('x', null, { v: 1 })
const second = edit('x', revisionOf(first), { v: 2 })
const deleted = edit('x', revisionOf(second), {}, true)
const other = edit('y', null, { v: 1 })
const otherDeleted = edit('y', revisionOf(other), {}, true)

/** The edits that the replicas have; those in `lacking` are missing on the first node, which decides. */
interface Situation {
  readonly has: readonly Edit[]
  readonly lacking?: readonly Edit[]
  readonly edits: readonly DocumentWrite[]
  readonly expected: readonly ('written' | 'conflict')[]
}

const situations: Record<string, Situation> = {
  'creates a document': { has: [], edits: [first], expected: ['written'] },
  'creates a document that exists': { has: [first], edits: [edit('x', null, { v: 3 })], expected: ['conflict'] },
  'creates a document that was deleted': {
    has: [first, second, deleted], edits: [edit('x', null, { v: 3 })], expected: ['written'],
  },
  'creates a document that the decider does not know to be deleted': {
    has: [first, second], lacking: [deleted], edits: [edit('x', null, { v: 3 })], expected: ['written'],
  },
  'replaces the current revision': { has: [first], edits: [second], expected: ['written'] },
  'replaces the current revision, which the decider lacks': {
    has: [first], lacking: [second], edits: [edit('x', revisionOf(second), { v: 3 })], expected: ['written'],
  },
  'replaces an old revision': {
    has: [first, second], edits: [edit('x', revisionOf(first), { v: 3 })], expected: ['conflict'],
  },
  'replaces an old revision, which the decider lacks': {
    has: [], lacking: [first, second], edits: [edit('x', revisionOf(first), { v: 3 })], expected: ['conflict'],
  },
  'replaces a revision that no replica has': {
    has: [first], edits: [edit('x', '2-ff', { v: 3 })], expected: ['conflict'],
  },
  'deletes a document': { has: [first, second], edits: [deleted], expected: ['written'] },
  'deletes a document that was deleted': {
    has: [first, second, deleted], edits: [edit('x', revisionOf(second), { v: 3 }, true)], expected: ['conflict'],
  },
  'makes several edits': {
    has: [first, second, other],
    lacking: [otherDeleted],
    edits: [
      edit('z', null, { v: 1 }), edit('x', null, { v: 3 }), edit('x', revisionOf(second), { v: 3 }),
      edit('y', null, { v: 3 }), edit('x', '2-ff', {}),
    ],
    expected: ['written', 'conflict', 'written', 'written', 'conflict'],
  },
  'restores a document and makes others': {
    has: [first, second, deleted, other],
    edits: [
      edit('z', null, { v: 1 }), edit('x', null, { v: 3 }), edit('y', null, { v: 3 }), edit('y', revisionOf(other), {}),
    ],
    expected: ['written', 'written', 'conflict', 'written'],
  },
}

async function worldWith({ has, lacking = [] }: Situation, q = 1): Promise<ReplicaWorld> {
  const world = new ReplicaWorld({ q })
  const paths = new Map<string, readonly string[]>()
  for (const stored of [...has, ...lacking]) {
    const ids = [stored.revisionHash, ...(stored.parent === null ? [] : paths.get(stored.parent)!)]
    paths.set(revisionOf(stored), ids)
    const { id, body } = stored
    const shardIndex = findRange(world.db.shards.map(({ range }) => range), documentHash(id, false))
    const revision: DocumentRevision = { id, path: { start: ids.length, ids }, deleted: stored.deleted, body }
    for (const node of nodes) {
      if (node === 'a' && lacking.includes(stored)) continue
      await world.store(node, shardIndex).storeRevisions({ revisions: [revision], revsLimit: 1000 }, plainCall)
    }
  }
  return world
}

const pairs = [['a', 'b'], ['a', 'c'], ['b', 'a'], ['b', 'c'], ['c', 'a'], ['c', 'b']] as const

describe('edits that a node coordinates while another node stops', () => {
  for (const [name, situation] of Object.entries(situations)) {
    it(`have the outcome that they have otherwise: ${name}`, () => everyOutcome(situation, {}))
  }

  for (const [name, situation] of Object.entries(situations)) {
    it(`have the outcome that they have otherwise, when they are validated: ${name}`, () => {
      const rules = edit('_design/rules', null, { validate_doc_update: '() => {}' })
      return everyOutcome({ ...situation, has: [...situation.has, rules] }, { user: { name: 'ann', roles: [] } })
    })
  }
})

/** Makes the edits through each node while another one stops, and compares their outcomes with the expected ones. */
async function everyOutcome(situation: Situation, options: WriteOptions): Promise<void> {
  for (const [coordinating, stopping] of pairs) {
    await atEachCall(stopping, () => worldWith(situation), async (world, moment) => {
      const coordinator = world.coordinator(coordinating)
      const written = coordinator.updateDocuments(world.db, situation.edits, options, request())
      const outcomes = await world.during(written).catch(asOutcome)
      await world.during(coordinator.stop())
      const message = `through ${coordinating}, ${moment}: ${JSON.stringify(outcomes)}`
      expect(outcomes.map(({ kind }) => kind), message).to.deep.equal(situation.expected)
      for (const outcome of outcomes) if (outcome.kind === 'written') expect(outcome.accepted).to.equal(false)
      for (const id of ['x', 'y', 'z']) {
        const { [stopping]: _, ...leaves } = await world.leavesOf(id)
        for (const known of Object.values(leaves)) expect(known.length, message).to.be.below(2)
      }
    })
  }
}

const everything: ListDocumentsOptions = { descending: false, skip: 0, limit: null, body: true, leaves: true }
const content = Buffer.alloc(200_000, 'content ')
const attachment: AttachmentRecord = {
  name: 'f', contentType: 'image/x', revpos: 1, digest: createHash('md5').update(content).digest('base64'),
  blob: createHash('sha256').update(content).digest('hex'), length: content.length, encoding: 'identity',
  storedLength: content.length,
}

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += 50_000) yield content.subarray(at, at + 50_000)
}

/** Other requests, and what of their answers does not depend on which replicas answer. */
const requests: Record<string, (coordinator: Coordinator, world: ReplicaWorld) => Promise<unknown>> = {
  'opening a document': async (coordinator, { db }) => {
    const opened = await coordinator.openDocument(db, 'x', { tree: true }, request())
    return [opened?.leaves, text(opened?.body)]
  },
  'opening a document that does not exist': (coordinator, { db }) =>
    coordinator.openDocument(db, 'none', {}, request()),
  'opening revisions': (coordinator, { db }) => coordinator.openRevisions(
    db, 'x', { revisions: [revisionOf(first), revisionOf(second)], latest: false, majority: true }, request()),
  'opening a revision that no replica has': (coordinator, { db }) => coordinator.openRevisions(
    db, 'x', { revisions: ['5-ff'], latest: false, majority: true }, request()),
  'opening leaves': (coordinator, { db }) =>
    coordinator.openRevisions(db, 'x', { revisions: 'leaves', latest: false }, request()),
  'opening revisions of several documents': (coordinator, { db }) => coordinator.openManyRevisions(
    db, ['x', 'y', 'none'].map(id => ({ id, revisions: 'leaves', latest: true })), {}, request()),
  'opening several documents': async (coordinator, { db }) =>
    (await coordinator.openDocuments(db, ['x', 'y', 'none'], { body: true }, request()))
      .map(opened => [opened?.leaves, text(opened?.body)]),
  'comparing revisions': (coordinator, { db }) =>
    coordinator.diffRevisions(db, [{ id: 'x', revisions: [revisionOf(second), '5-ff'] }], request()),
  'storing revisions': (coordinator, { db }) => coordinator.storeRevisions(
    db, [{ id: 'x', path: { start: 1, ids: ['ff'] }, deleted: false, body: bytes({}) }], {}, request()),
  'listing documents': async (coordinator, { db }) => {
    const { total, rows } = await coordinator.listDocuments(db, everything, request())
    return [total, await collect(rows)]
  },
  'listing local documents': async (coordinator, { db }) =>
    collect((await coordinator.listLocalDocuments(db, everything, request())).rows),
  'opening a local document': async (coordinator, { db }) =>
    (await coordinator.openLocalDocument(db, 'l', {}, request()))?.revision,
  'writing a local document': (coordinator, { db }) => coordinator.updateLocalDocument(
    db, { id: 'l', revision: 1, body: bytes({}), mustExist: true }, {}, request()),
  'deleting a local document that does not exist': (coordinator, { db }) => coordinator.updateLocalDocument(
    db, { id: 'none', revision: 1, body: null, mustExist: true }, {}, request()),
  'writing an attachment and reading it': async (coordinator, { db }) => {
    await coordinator.writeBlob(db, 'z', pieces(), {}, request())
    const created: DocumentWrite = { ...edit('z', null, {}), attachments: [attachment] }
    const [outcome] = await coordinator.updateDocuments(db, [created], {}, request())
    const read: Uint8Array[] = []
    for await (const part of coordinator.readBlob(db, 'z', attachment, null, request())) read.push(part)
    return [outcome?.kind, Buffer.concat(read).equals(content)]
  },
  'sharing an attachment': async (coordinator, { db }) => {
    await coordinator.writeBlob(db, 'y', pieces(), {}, request())
    await coordinator.shareBlobs(db, 'y', 'x', [attachment.blob], request())
    await coordinator.keepBlobs(db, 'x', [attachment.blob], request())
    const change: DocumentWrite = { ...edit('x', revisionOf(second), {}), attachments: [attachment] }
    return (await coordinator.updateDocuments(db, [change], {}, request())).map(({ kind }) => kind)
  },
  'purging a document': (coordinator, { db }) =>
    coordinator.purgeDocuments(db, [{ id: 'y', revisions: [revisionOf(other)] }], {}, request()),
  'the count of documents': async (coordinator, { db }) =>
    (await coordinator.databaseInfo(db, request())).documentCount,
  'reading changes': async (coordinator, { db }) => {
    const feed = await coordinator.openChanges(
      db, { since: { kind: 'start' }, descending: false, limit: null, body: true, follow: false }, request(),
    )
    const ids = new Set<string>()
    for (let event = await feed.next(); event !== null; event = await feed.next()) {
      if (event.kind !== 'rows') continue
      for (const row of event.rows) {
        ids.add(row.id)
        feed.take(event, row)
      }
    }
    await feed.close()
    return [...ids].sort()
  },
}

describe('a request that a node coordinates while another node stops', () => {
  for (const [name, act] of Object.entries(requests)) {
    it(`has the answer that it has otherwise: ${name}`, async () => {
      const situation = { has: [first, second, other], edits: [], expected: [] }
      const prepare = async (): Promise<ReplicaWorld> => {
        const world = await worldWith(situation, 2)
        const coordinator = world.coordinator('a')
        const local = { id: 'l', revision: 0, body: bytes({}), mustExist: false }
        await coordinator.updateLocalDocument(world.db, local, { w: 3 }, request())
        await coordinator.stop()
        return world
      }
      for (const [coordinating, stopping] of pairs) {
        const answerIn = async (world: ReplicaWorld): Promise<unknown> => {
          const coordinator = world.coordinator(coordinating)
          const answer = await world.during(act(coordinator, world)).catch(asOutcome)
          await world.during(coordinator.stop())
          return answer
        }
        const expected = await answerIn(await prepare())
        await atEachCall(stopping, prepare, async (world, moment) => {
          expect(await answerIn(world), `through ${coordinating}, ${moment}`).to.deep.equal(expected)
        })
      }
    })
  }
})

/** Runs `act` in a new world for each number of calls that the stopping node still begins. */
async function atEachCall(
  stopping: string, prepare: () => Promise<ReplicaWorld>,
  act: (world: ReplicaWorld, moment: string) => Promise<void>,
): Promise<void> {
  for (let calls = 0; ; calls++) {
    const world = await prepare()
    const fault = { kind: 'stop' as const, left: calls }
    world.faults.set(stopping, fault)
    await act(world, `${stopping} begins ${calls} calls`)
    if (fault.left > 0) return
  }
}

function asOutcome({ status, message, stack }: ApiError): WriteOutcome[] {
  return [{ kind: 'error', error: stack ?? '', reason: message, status }]
}

async function collect<Row>(pages: AsyncIterable<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}
