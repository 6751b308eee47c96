import { expect } from 'chai'
import fc from 'fast-check'
import { ApiError, decodeSinceToken, encodeSinceToken, timeSpanMin, timeSpanMs } from '@sectional/core'
import type { ChangeRow } from '@sectional/core'
import { defaultAntiEntropyOptions } from '../../src/anti-entropy/anti-entropy-options.ts'
import { syncReplica } from '../../src/anti-entropy/replica-sync.ts'
import type { ChangesFeed, ChangesOptions } from '../../src/contracts/coordinator.ts'
import type { CoordinatorNode } from '../../src/coordinator-node.ts'
import { edit, plainCall, ReplicaWorld, request } from '../replica-world.ts'

const fromStart: ChangesOptions = {
  since: { kind: 'start' }, descending: false, limit: null, body: false, follow: false,
}

function since(token: string): ChangesOptions['since'] {
  const decoded = decodeSinceToken(token)
  if (decoded.kind === 'malformed') throw new Error(decoded.reason)
  return decoded
}

interface Read { readonly rows: readonly ChangeRow[]; readonly token: string; readonly pending: number }

/** Takes rows until the feed ends, has caught up, or has returned `limit` rows. */
async function read(feed: ChangesFeed, limit = Infinity): Promise<Read> {
  const rows: ChangeRow[] = []
  while (rows.length < limit) {
    const event = await feed.next()
    if (event?.kind !== 'rows') break
    for (const row of event.rows) {
      feed.take(event, row)
      rows.push(row)
      if (rows.length === limit) break
    }
  }
  return { rows, token: feed.token(), pending: await feed.pending() }
}

/** Takes `count` rows from a feed that may catch up several times meanwhile. */
async function follow(feed: ChangesFeed, count: number): Promise<ChangeRow[]> {
  const rows: ChangeRow[] = []
  while (rows.length < count) {
    const event = await feed.next()
    if (event === null) break
    if (event.kind === 'caught-up') continue
    for (const row of event.rows) {
      feed.take(event, row)
      rows.push(row)
    }
  }
  return rows
}

async function list(
  coordinator: CoordinatorNode, world: ReplicaWorld, options: Partial<ChangesOptions> = {},
): Promise<Read> {
  const feed = await coordinator.openChanges(world.db, { ...fromStart, ...options }, request())
  try {
    return await read(feed, options.limit ?? Infinity)
  } finally {
    await feed.close()
  }
}

function ids(rows: readonly ChangeRow[]): string[] {
  return rows.map(row => row.id).sort()
}

function numbered(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => `doc${String(from + i).padStart(4, '0')}`)
}

async function write(
  world: ReplicaWorld, node: string, names: readonly string[], w = world.nodes.length,
): Promise<void> {
  await world.during(
    world.coordinator(node).updateDocuments(world.db, names.map(id => edit(id, null, { id })), { w }, request()),
  )
}

async function replace(world: ReplicaWorld, node: string, id: string): Promise<void> {
  const before = await world.during(world.coordinator(node).openDocument(world.db, id, {}, request()))
  await world.during(world.coordinator(node).updateDocuments(
    world.db, [edit(id, before!.leaves[0]!.revision, { again: true })], { w: world.nodes.length }, request(),
  ))
}

/** Makes the replicas of the nodes equal, as completed pushes of anti-entropy would. */
async function settle(world: ReplicaWorld, nodes = world.nodes): Promise<void> {
  for (const [index, { replicas }] of world.db.shards.entries()) {
    const hosts = replicas.map(replica => replica.node).filter(node => nodes.includes(node))
    for (let round = 0; round < 2; round++) {
      for (const source of hosts) {
        for (const target of hosts) {
          if (source !== target) await syncReplica({
            source: world.store(source, index), target: world.store(target, index), revsLimit: 1000,
            options: defaultAntiEntropyOptions, call: plainCall,
          })
        }
      }
    }
  }
}

describe('changes of a database', () => {
  it('are listed once each, from one replica of each shard', async () => {
    const world = new ReplicaWorld({ q: 4 })
    const all = numbered(0, 300)
    await write(world, 'a', all)
    const { rows, pending } = await list(world.coordinator('b'), world)
    expect(ids(rows)).to.deep.equal(all)
    expect(pending).to.equal(0)
    expect(new Set(world.calls.filter(call => call.verb === 'scanChanges')
      .map(call => call.node))).to.deep.equal(new Set(['b']))
  })

  it('are read from few shards at once: each holds a page until the reader has dealt with it', async () => {
    const world = new ReplicaWorld({ q: 16 })
    const all = numbered(0, 300)
    await write(world, 'a', all)
    const feed = await world.coordinator('b').openChanges(world.db, fromStart, request())
    const scanned = (): number => world.calls.filter(call => call.verb === 'scanChanges').length
    const first = await feed.next()
    await new Promise(resolve => setImmediate(resolve))
    expect(first?.kind).to.equal('rows')
    expect(scanned()).to.equal(2)
    const { rows } = await read(feed)
    expect(scanned()).to.equal(16)
    expect(ids([...first?.kind === 'rows' ? first.rows : [], ...rows])).to.deep.equal(all)
    await feed.close()
  })

  it('are read in pages that join without gap or repetition, on whichever node', async () => {
    const world = new ReplicaWorld({ q: 4 })
    const all = numbered(0, 100)
    await write(world, 'a', all)
    const found: string[] = []
    let place: ChangesOptions['since'] = { kind: 'start' }
    for (let page = 0; found.length < all.length; page++) {
      const { rows, token, pending } = await list(world.coordinator(world.nodes[page % 3]!), world, {
        since: place, limit: 7,
      })
      found.push(...rows.map(row => row.id))
      expect(pending).to.equal(all.length - found.length)
      place = since(token)
    }
    expect(found.sort()).to.deep.equal(all)
    expect((await list(world.coordinator('c'), world, { since: place })).rows).to.deep.equal([])
  })

  it('begin at now, or count the present changes without reading them', async () => {
    const world = new ReplicaWorld({ q: 2 })
    await write(world, 'a', numbered(0, 20))
    const now = await list(world.coordinator('a'), world, { since: { kind: 'now' } })
    expect([now.rows, now.pending]).to.deep.equal([[], 0])
    const none = await list(world.coordinator('a'), world, { limit: 0 })
    expect([none.rows, none.pending]).to.deep.equal([[], 20])
    expect((await list(world.coordinator('a'), world, { since: since(none.token) })).rows.length).to.equal(20)
    await write(world, 'b', ['new'])
    expect(ids((await list(world.coordinator('c'), world, { since: since(now.token) })).rows)).to.deep.equal(['new'])
  })

  it('begin at a time, and include every change that was recorded from then on', async () => {
    const world = new ReplicaWorld({ q: 2 })
    const from = (time: number): Promise<Read> => list(world.coordinator('b'), world, { since: { kind: 'time', time } })
    world.time = timeSpanMin
    await write(world, 'a', numbered(0, 20))
    world.time += 2 * timeSpanMs
    await write(world, 'a', numbered(20, 30))
    expect((await from(timeSpanMin - 1)).rows.length).to.equal(30)
    expect(ids((await from(world.time + 1000)).rows)).to.deep.equal(numbered(20, 30))
    expect((await from(world.time + 2 * timeSpanMs)).rows.length).to.equal(0)
    const { rows, token } = await from(world.time)
    expect(ids(rows)).to.include.members(numbered(20, 30))
    expect((await list(world.coordinator('c'), world, { since: since(token) })).rows.length).to.equal(0)
  })

  it('are listed from the newest to the oldest when descending', async () => {
    const world = new ReplicaWorld()
    await write(world, 'a', numbered(0, 5))
    const { rows, pending } = await list(world.coordinator('a'), world, { descending: true, limit: 2 })
    expect(rows.map(row => row.id)).to.deep.equal(['doc0004', 'doc0003'])
    expect(pending).to.equal(3)
  })

  it('begin at the start with a token of another database', async () => {
    const world = new ReplicaWorld({ q: 2 })
    await write(world, 'a', numbered(0, 10))
    const stranger = encodeSinceToken(
      world.db.shards.map(({ range }) => ({ range, node: 'a', history: 'other', sequence: 1e6 })),
    )
    expect((await list(world.coordinator('b'), world, { since: since(stranger) })).rows.length).to.equal(10)
  })

  it('are not skipped for a token that claims more than was written', async () => {
    const world = new ReplicaWorld()
    await write(world, 'a', ['a'])
    const { token } = await list(world.coordinator('a'), world)
    const decoded = since(token)
    const greater = decoded.kind === 'vector' ? decoded.parts.map(part => ({ ...part, sequence: 1000 })) : []
    const { token: corrected } = await list(world.coordinator('a'), world, {
      since: { kind: 'vector', parts: greater },
    })
    await write(world, 'a', ['b'])
    expect(ids((await list(world.coordinator('a'), world, { since: since(corrected) })).rows)).to.deep.equal(['b'])
  })

  it('resume on another replica when the one that served them is gone, missing nothing and not from zero', async () => {
    const world = new ReplicaWorld({ q: 4 })
    await write(world, 'a', numbered(0, 400))
    await settle(world)
    const { token } = await list(world.coordinator('a'), world)
    await write(world, 'a', numbered(400, 420), 2)
    world.isolate('a')
    world.wipe('a')
    const { rows } = await list(world.coordinator('b'), world, { since: since(token) })
    for (const id of numbered(400, 420)) expect(ids(rows)).to.include(id)
    expect(rows.length).to.be.below(60)
  })

  it('resume in the middle of a first read when the one replica that was read is away, not from zero', async () => {
    const world = new ReplicaWorld({ q: 1 })
    const all = numbered(0, 400)
    for (let at = 0; at < all.length; at += 20) await write(world, world.nodes[(at / 20) % 3]!, all.slice(at, at + 20))
    await settle(world)
    for (const reader of ['a', 'b', 'c']) {
      const first = await list(world.coordinator(reader), world, { limit: 200 })
      world.isolate(reader)
      for (const other of world.nodes.filter(node => node !== reader)) {
        const { rows } = await list(world.coordinator(other), world, { since: since(first.token) })
        expect([...new Set([...ids(first.rows), ...ids(rows)])].sort()).to.deep.equal(all)
        expect(rows.length, `${reader} to ${other}`).to.be.within(200, 225)
      }
      world.heal()
    }
  })

  it('resume in the middle on a replica that was filled by another, in whatever order it wrote', async () => {
    const world = new ReplicaWorld({ q: 1 })
    await write(world, 'a', numbered(0, 1000))
    for (let i = 0; i < 50; i++) await replace(world, 'a', `doc${String((i * 37) % 1000).padStart(4, '0')}`)
    await settle(world)
    world.wipe('b')
    await settle(world)
    world.wipe('a')
    await replace(world, 'b', 'doc0003')
    await settle(world)
    const first = await list(world.coordinator('b'), world, { limit: 500 })
    world.isolate('b')
    const { rows } = await list(world.coordinator('a'), world, { since: since(first.token) })
    expect([...new Set([...ids(first.rows), ...ids(rows)])].sort()).to.deep.equal(numbered(0, 1000))
    expect(rows.length).to.be.below(600)
  })

  for (const reader of ['a', 'b', 'c']) {
    it(`continue on the replica of ${reader} that was read, while others lack its changes`, async () => {
      const world = new ReplicaWorld({ q: 1 })
      world.isolate(reader)
      await write(world, reader, numbered(0, 5), 1)
      world.heal()
      const first = await list(world.coordinator(reader), world)
      expect(ids(first.rows)).to.deep.equal(numbered(0, 5))
      const tokens = [first.token, (await world.coordinator(reader).databaseInfo(world.db, request())).updateSequence]
      for (const node of world.nodes) {
        const { rows, token } = await list(world.coordinator(node), world, { since: since(first.token) })
        expect(ids(rows), `on ${node} at once`).to.deep.equal([])
        tokens.push(token)
      }
      await settle(world)
      await write(world, 'a', numbered(5, 8))
      for (const token of tokens) {
        for (const node of world.nodes) {
          const { rows } = await list(world.coordinator(node), world, { since: since(token) })
          expect(ids(rows), `on ${node}`).to.deep.equal(numbered(5, 8))
        }
      }
    })
  }

  it('continue on the replica of any node when all replicas were equal, and repeat no row', async () => {
    const world = new ReplicaWorld({ q: 1 })
    for (const node of world.nodes) {
      world.isolate(node)
      await write(world, node, [`of ${node}`], 1)
      world.heal()
    }
    await settle(world)
    const tokens = await Promise.all(world.nodes.map(async node => (await list(world.coordinator(node), world)).token))
    expect(new Set(tokens).size).to.equal(1)
    await write(world, 'b', numbered(0, 3))
    for (const node of world.nodes) {
      world.calls.length = 0
      const { rows } = await list(world.coordinator(node), world, { since: since(tokens[0]!) })
      expect(ids(rows)).to.deep.equal(numbered(0, 3))
      expect(world.calls.filter(({ verb }) => verb === 'scanChanges').map(call => call.node)).to.deep.equal([node])
    }
  })

  it('end at the same token on all nodes although the replicas learn only meanwhile that they are equal', async () => {
    const world = new ReplicaWorld({ q: 2 })
    await write(world, 'a', numbered(0, 10))
    const feeds = await Promise.all(
      world.nodes.map(node => world.coordinator(node).openChanges(world.db, fromStart, request())),
    )
    for (const feed of feeds) expect((await follow(feed, Infinity)).length).to.equal(10)
    await settle(world)
    await world.clock.advance(1000)
    const tokens = await Promise.all(feeds.map(async feed => {
      expect(await feed.pending()).to.equal(0)
      return feed.token()
    }))
    expect(new Set(tokens).size).to.equal(1)
    await Promise.all(feeds.map(feed => feed.close()))
  })

  it('resume from the database\'s update sequence', async () => {
    const world = new ReplicaWorld({ q: 4 })
    await write(world, 'a', numbered(0, 50))
    await settle(world)
    const { updateSequence } = await world.coordinator('c').databaseInfo(world.db, request())
    const state = await (await world.coordinator('a').databaseState(world.db, request())).updateSequence()
    await write(world, 'b', ['new'])
    world.isolate('c')
    for (const token of [updateSequence, state]) {
      expect(ids((await list(world.coordinator('b'), world, { since: since(token) })).rows)).to.deep.equal(['new'])
    }
  })

  it('continue on another replica when one fails in the middle', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c', 'd'], n: 3, q: 4 })
    await write(world, 'a', numbered(0, 1200))
    await settle(world)
    world.faults.set('a', { kind: 'break-scan', afterPages: 1 })
    world.faults.set('b', { kind: 'break-scan', afterPages: 2 })
    const { rows } = await world.during(list(world.coordinator('d'), world))
    expect([...new Set(ids(rows))]).to.deep.equal(numbered(0, 1200))
  })

  it('fail when a shard has no replica left', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'], n: 1, q: 2 })
    await write(world, 'a', ['a', 'b', 'c', 'd'], 1)
    world.isolate('b')
    let failure: unknown
    await list(world.coordinator('a'), world).catch((error: unknown) => { failure = error })
    expect(String(failure)).to.contain('No DB shards could be opened')
  })
})

describe('following changes', () => {
  const following: Partial<ChangesOptions> = { follow: true }

  it('returns later changes after it has reported that it caught up', async () => {
    const world = new ReplicaWorld({ q: 2 })
    await write(world, 'a', ['a', 'b'])
    const coordinator = world.coordinator('a')
    const feed = await coordinator.openChanges(world.db, { ...fromStart, ...following }, request())
    expect(ids((await read(feed)).rows)).to.deep.equal(['a', 'b'])
    const coming = read(feed, 1)
    await write(world, 'b', ['late'])
    const { rows, token } = await world.during(coming)
    expect(ids(rows)).to.deep.equal(['late'])
    expect((await list(world.coordinator('b'), world, { since: since(token) })).rows.length).to.equal(0)
    await feed.close()
    expect(coordinator.watchedReplicas).to.equal(0)
  })

  it('costs one waiting call per replica and one read per change, however many feeds follow', async () => {
    const world = new ReplicaWorld({ q: 2, n: 2 })
    const coordinator = world.coordinator('a')
    const feeds = await Promise.all(
      Array.from({ length: 50 }, () => coordinator.openChanges(world.db, { ...fromStart, ...following }, request())),
    )
    for (const feed of feeds) expect(await feed.next()).to.deep.equal({ kind: 'caught-up' })
    await world.during(Promise.resolve())
    expect(coordinator.watchedReplicas).to.equal(2)
    const calls = (verb: string): number => world.calls.filter(call => call.verb === verb).length
    // Two calls wait for changes. The other two asked the remaining replicas for their checkpoints, once for all feeds.
    expect(calls('waitForChange')).to.equal(4)
    const scans = calls('scanChanges')
    const reading = feeds.map(feed => read(feed, 1))
    await write(world, 'a', ['x'], 2)
    for (const { rows } of await world.during(Promise.all(reading))) expect(ids(rows)).to.deep.equal(['x'])
    expect(calls('scanChanges') - scans).to.be.below(4)
    const idle = world.calls.length
    await world.clock.advance(60_000)
    expect(world.calls.length - idle).to.be.below(4)
    await Promise.all(feeds.map(feed => feed.close()))
    await world.during(Promise.resolve())
    expect(coordinator.watchedReplicas).to.equal(0)
  })

  it('polls a replica on which no call may wait at a bounded rate, and waits again when there is room', async () => {
    const world = new ReplicaWorld({
      q: 40, n: 1, coordinator: { pollIntervalMs: 200, pollsPerRound: 5, pollRoundMs: 100 },
    })
    for (const node of ['b', 'c']) world.faults.set(node, { kind: 'refuse-waits' })
    const coordinator = world.coordinator('a')
    const feed = await coordinator.openChanges(world.db, { ...fromStart, ...following }, request())
    expect(await feed.next()).to.deep.equal({ kind: 'caught-up' })
    await world.clock.advance(1_000)
    const before = world.calls.length
    await world.clock.advance(10_000)
    // Each turn makes two calls: a poll, and another attempt to wait.
    expect(world.calls.length - before).to.be.within(2 * 5 * 90, 2 * 5 * 101)
    const coming = follow(feed, 10)
    await write(world, 'b', Array.from({ length: 10 }, (_, at) => `late${at}`))
    expect(ids(await world.during(coming)).sort()).to.deep.equal(Array.from({ length: 10 }, (_, at) => `late${at}`))
    world.faults.clear()
    const idle = feed.next()
    await world.clock.advance(10_000)
    expect(await world.during(idle)).to.deep.equal({ kind: 'caught-up' })
    const quiet = world.calls.length
    await world.clock.advance(60_000)
    expect(world.calls.length).to.equal(quiet)
    await feed.close()
    expect(coordinator.watchedReplicas).to.equal(0)
  })

  it('is refused with 503 when feeds wait on the allowed number of replicas, and disturbs none', async () => {
    const world = new ReplicaWorld({ q: 8, n: 1, coordinator: { watchesMax: 8 } })
    const coordinator = world.coordinator('a')
    const other = { ...world.db, name: 'other', incarnation: 'two' }
    const first = await coordinator.openChanges(
      { ...world.db, shards: world.db.shards.slice(0, 5) }, { ...fromStart, ...following }, request(),
    )
    expect(await first.next()).to.deep.equal({ kind: 'caught-up' })
    const all = await coordinator.openChanges(world.db, { ...fromStart, ...following }, request())
    expect(await all.next()).to.deep.equal({ kind: 'caught-up' })
    expect(coordinator.watchedReplicas).to.equal(8)
    await all.close()
    world.setDatabase(other)
    const refused = await coordinator.openChanges(other, { ...fromStart, ...following }, request())
    const error = await refused.next().then(() => undefined, (thrown: ApiError) => thrown)
    expect([error?.status, error?.headers]).to.deep.equal([503, { 'Retry-After': '1' }])
    await refused.close()
    expect(coordinator.watchedReplicas).to.equal(5)
    await first.close()
    await world.during(Promise.resolve())
    expect(coordinator.watchedReplicas).to.equal(0)
  })

  it('is woken by local documents without any row, and sleeps again', async () => {
    const world = new ReplicaWorld()
    const coordinator = world.coordinator('a')
    const feed = await coordinator.openChanges(world.db, { ...fromStart, ...following }, request())
    expect(await feed.next()).to.deep.equal({ kind: 'caught-up' })
    const next = feed.next()
    await world.during(coordinator.updateLocalDocument(
      world.db, { id: 'mark', revision: 1, body: Buffer.from('{}'), mustExist: false }, { w: 3 }, request(),
    ))
    expect(await world.during(next)).to.deep.equal({ kind: 'caught-up' })
    const calls = world.calls.length
    await world.clock.advance(5000)
    expect(world.calls.length - calls).to.be.below(3)
    await feed.close()
  })

  it('moves to another replica when the link breaks, and waits for one when none is left', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c'], n: 2, q: 1 })
    await write(world, 'a', ['first'], 2)
    await settle(world)
    const feed = await world.coordinator('c').openChanges(world.db, { ...fromStart, ...following }, request())
    expect(ids((await read(feed)).rows)).to.deep.equal(['first'])
    world.cut('c', 'a')
    const coming = follow(feed, 1)
    await write(world, 'b', ['second'], 2)
    expect(ids(await world.during(coming))).to.deep.equal(['second'])
    world.cut('c', 'b')
    const later = follow(feed, 1)
    await write(world, 'b', ['third'], 2)
    await world.clock.advance(5000)
    world.heal()
    expect(ids(await world.during(later))).to.deep.equal(['third'])
    await feed.close()
  })

  it('that is closed while it looks for a replica asks no other one, and leaves no failure behind', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b', 'c'], n: 2, q: 1 })
    const reader = world.nodes.find(node => !world.db.shards[0]!.replicas.some(replica => replica.node === node))!
    const [silent, broken] = world.db.shards[0]!.replicas.map(({ node }) => node) as [string, string]
    world.faults.set(silent, { kind: 'hang' })
    world.faults.set(broken, { kind: 'fail', code: 'not_hosted' })
    const leaving = new AbortController()
    const opening = world.coordinator(reader)
      .openChanges(world.db, { ...fromStart, ...following }, { ...request(), signal: leaving.signal })
    const ended = opening.then(feed => feed.next(), () => null)
    await world.clock.advance(10)
    leaving.abort()
    expect(await world.during(ended)).to.equal(null)
    await world.clock.advance(60_000)
    expect(world.calls.filter(call => call.node === broken)).to.deep.equal([])
  })

  it('gives up when no replica comes back', async () => {
    const world = new ReplicaWorld({ nodes: ['a', 'b'], n: 1, q: 1 })
    const reader = world.db.shards[0]!.replicas[0]!.node === 'a' ? 'b' : 'a'
    const feed = await world.coordinator(reader).openChanges(world.db, { ...fromStart, ...following }, request())
    expect(await feed.next()).to.deep.equal({ kind: 'caught-up' })
    world.cut('a', 'b')
    let failure: unknown
    const failing = (async () => { while (await feed.next() !== null); })().catch((error: unknown) => {
      failure = error
    })
    await world.during(failing)
    expect(String(failure)).to.contain('No DB shards could be opened')
    await feed.close()
  })

  it('ends when end is called, and when the client has disconnected', async () => {
    const world = new ReplicaWorld({ q: 2 })
    const coordinator = world.coordinator('a')
    const controller = new AbortController()
    const feed = await coordinator.openChanges(world.db, { ...fromStart, ...following }, {
      requestId: 'r', signal: controller.signal,
    })
    await feed.next()
    const waiting = feed.next()
    feed.end()
    expect(await waiting).to.equal(null)
    const other = await coordinator.openChanges(world.db, { ...fromStart, ...following }, {
      requestId: 'r', signal: controller.signal,
    })
    await other.next()
    const last = other.next()
    controller.abort()
    expect(await last).to.equal(null)
    await feed.close()
    await other.close()
    expect(coordinator.watchedReplicas).to.equal(0)
  })

  it('never misses a change, whatever breaks and wherever its reader resumes', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('write' as const), node: fc.nat(2), id: fc.nat(20) }) },
      { weight: 2, arbitrary: fc.record({
        kind: fc.constant('read' as const), node: fc.nat(2), limit: fc.integer({ min: 1, max: 8 }),
      }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('isolate' as const), node: fc.nat(2) }) },
      fc.record({ kind: fc.constant('heal' as const) }),
      fc.record({ kind: fc.constant('settle' as const) }),
      fc.record({ kind: fc.constant('wipe' as const), node: fc.nat(2) }),
    )
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const world = new ReplicaWorld({ q: 2 })
      const seen = new Map<string, Set<string>>()
      let place: ChangesOptions['since'] = { kind: 'start' }
      const advance = async (node: string, limit: number): Promise<number> => {
        const { rows, token } = await world.during(list(world.coordinator(node), world, { since: place, limit }))
        for (const { id, leaves } of rows) {
          for (const { revision } of leaves) (seen.get(id) ?? seen.set(id, new Set()).get(id)!).add(revision)
        }
        place = since(token)
        return rows.length
      }
      for (const each of steps) {
        if (each.kind === 'write') {
          const id = `d${each.id}`
          const before = await world.during(
            world.coordinator(world.nodes[each.node]!).openDocument(world.db, id, {}, request()),
          )
          await world.during(world.coordinator(world.nodes[each.node]!).updateDocuments(
            world.db, [edit(id, before?.leaves[0]!.revision ?? null, { by: each.node })], { w: 1 }, request(),
          ))
        } else if (each.kind === 'read') await advance(world.nodes[each.node]!, each.limit)
        else if (each.kind === 'isolate') world.isolate(world.nodes[each.node]!)
        else if (each.kind === 'heal') world.heal()
        else if (each.kind === 'settle') await settle(world)
        else {
          // A disk is lost only after the other replicas have received its changes.
          await settle(world)
          world.wipe(world.nodes[each.node]!)
        }
      }
      world.heal()
      await settle(world)
      while (await advance('a', 1000) > 0);
      for (let index = 0; index < 2; index++) {
        const everyChange = { since: 0, descending: false, body: false, locals: false }
        for await (const page of world.store('a', index).scanChanges(everyChange, plainCall)) {
          for (const { id, leaves } of page) {
            for (const { revision } of leaves) expect(seen.get(id), `${id} ${revision}`).to.include(revision)
          }
        }
      }
    }), { numRuns: 200 })
  }).timeout(20_000)
})
