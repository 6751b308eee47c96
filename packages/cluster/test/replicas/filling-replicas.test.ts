import { expect } from 'chai'
import type { ListDocumentsOptions } from '../../src/contracts/coordinator.ts'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { edit, plainCall, ReplicaWorld, request, text, type Verb } from '../replica-world.ts'

const everything: ListDocumentsOptions = { descending: false, skip: 0, limit: null, body: false, leaves: false }
const first = edit('x', null, { v: 1 })
const revision = `1-${first.revisionHash}`

/** Makes a world in which all nodes but `filling` have the document x, and the replica of `filling` is being filled. */
async function beingFilled(filling: string): Promise<ReplicaWorld> {
  const world = new ReplicaWorld()
  const { db } = world
  const others = world.nodes.filter(node => node !== filling)
  for (const node of others) {
    await world.store(node).storeRevisions({
      revisions: [{ id: 'x', path: { start: 1, ids: [first.revisionHash] }, deleted: false, body: first.body }],
      locals: [{ id: 'x', revision: 1, stamp: 1, body: first.body }], revsLimit: 1000,
    }, plainCall)
  }
  world.setDatabase({
    ...db,
    shards: db.shards.map(shard => ({
      ...shard, replicas: shard.replicas.map(({ node }) => ({ node, filling: node === filling })),
    })),
  })
  return world
}

async function idsOf(rows: AsyncIterable<readonly { readonly id: string }[]>): Promise<string[]> {
  const ids: string[] = []
  for await (const page of rows) ids.push(...page.map(row => row.id))
  return ids
}

type Read = (coordinator: CoordinatorNode, world: ReplicaWorld) => Promise<unknown>

/** What each operation answers in such a world, with one reply of a replica where the quorum can be chosen. */
const reads: Readonly<Record<string, { readonly read: Read; readonly answer: unknown }>> = {
  'a document': {
    read: async (coordinator, { db }) => (
      text((await coordinator.openDocument(db, 'x', { r: 1 }, request()))?.body)),
    answer: '{"v":1}',
  },
  'its revisions': {
    read: async (coordinator, { db }) => {
      const asked = { revisions: [revision], latest: false, r: 1 }
      return (await coordinator.openRevisions(db, 'x', asked, request()))?.map(({ kind }) => kind)
    },
    answer: ['found'],
  },
  'a local document': {
    read: async (coordinator, { db }) => (
      text((await coordinator.openLocalDocument(db, 'x', { r: 1 }, request()))?.body)),
    answer: '{"v":1}',
  },
  'a list of documents': {
    read: async (coordinator, { db }) => {
      const { rows, total } = await coordinator.listDocuments(db, everything, request())
      return [await idsOf(rows), total]
    },
    answer: [['x'], 1],
  },
  'a list of local documents': {
    read: async (coordinator, { db }) => (
      idsOf((await coordinator.listLocalDocuments(db, everything, request())).rows)),
    answer: ['x'],
  },
  'the changes': {
    read: async (coordinator, { db }) => {
      const feed = await coordinator.openChanges(
        db, { since: { kind: 'start' }, descending: false, limit: null, body: false, follow: false }, request(),
      )
      const event = await feed.next()
      await feed.close()
      return event?.kind === 'rows' && event.rows.map(row => row.id)
    },
    answer: ['x'],
  },
  'the outcome of an edit of the newest revision': {
    read: async (coordinator, { db }) => (
      (await coordinator.updateDocuments(db, [edit('x', revision, { v: 2 })], {}, request())).map(({ kind }) => kind)),
    answer: ['written'],
  },
  'the outcome of an edit without a revision': {
    read: async (coordinator, { db }) => (
      (await coordinator.updateDocuments(db, [edit('x', null, { v: 2 })], {}, request())).map(({ kind }) => kind)),
    answer: ['conflict'],
  },
}

describe('a replica that is being filled', () => {
  for (const [name, { read, answer }] of Object.entries(reads)) {
    it(`is not asked for ${name}, on its own node and on others`, async () => {
      for (const [filling, asked] of [['a', 'a'], ['a', 'b'], ['c', 'c'], ['c', 'b']] as const) {
        const world = await beingFilled(filling)
        const coordinator = world.coordinator(asked)
        expect(await read(coordinator, world), `${asked} while ${filling} is filled`).to.deep.equal(answer)
        await world.during(coordinator.stop())
        const stores: readonly Verb[] = ['storeRevisions']
        const others = world.calls.filter(({ node, verb }) => node === filling && !stores.includes(verb))
        expect(others, `calls of ${filling}`).to.deep.equal([])
      }
    })
  }
})
