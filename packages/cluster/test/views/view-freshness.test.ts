import { expect } from 'chai'
import { decodeSinceToken } from '@sectional/core'
import type { IndexHead } from '@sectional/core'
import { IndexBehindError } from '../../src/views/index-behind-error.ts'
import { scanView } from '../../src/views/view-scan.ts'
import type { ViewAnswer, ViewQuery } from '../../src/contracts/view-query.ts'
import { defaultViewOptions } from '../../src/views/view-scope.ts'
import type { ViewScope } from '../../src/views/view-scope.ts'
import { IndexFingerprints } from '../../src/views/index-fingerprints.ts'
import { viewSummary } from '../../src/views/view-summary.ts'
import { edit, plainCall, request } from '../replica-world.ts'
import { everything, IndexWorld, testRows } from './index-world.ts'
import type { TestDocument } from './index-world.ts'

/** Only the first three have replicas. */
const nodes = ['a', 'b', 'c', 'out', 'other']
const ids = Array.from({ length: 24 }, (_, i) => `d${String(i).padStart(2, '0')}`)

function documentOf(id: string, key: unknown = id): TestDocument {
  return { id, keys: [key], value: 1 }
}

async function filled(options: ConstructorParameters<typeof IndexWorld>[0] = {}): Promise<IndexWorld> {
  const world = new IndexWorld({ q: 2, nodes, n: 3, ...options })
  const { n } = world.db
  const hosts = ['a', 'b', 'c']
  world.setDatabase({ ...world.db, shards: world.db.shards.map(({ range }, index) => ({
    range, replicas: Array.from({ length: n }, (_, i) => ({ node: hosts[(index + i) % 3]!, filling: false })),
  })) })
  await world.write(ids.map(id => documentOf(id)))
  return world
}

interface Result extends Pick<ViewAnswer<unknown>, 'fingerprint' | 'total' | 'updateSequence'> {
  readonly ids: readonly string[]
}

async function answerOf(
  world: IndexWorld, via: string | ViewScope, query: Partial<ViewQuery> = {},
): Promise<Result> {
  const scope = typeof via === 'string' ? world.viewScope(via) : via
  const answer = await world.during(scanView(scope, world.db, { ...everything, ...query }, request()))
  const rows = await world.during(testRows(answer.rows))
  await answer.close()
  await world.during(scope.background.idle())
  return { ...answer, ids: rows.map(({ id }) => id) }
}

function verbs(world: IndexWorld): readonly string[] {
  return world.calls.filter(({ verb }) => verb.includes('Index')).map(({ node, verb }) => `${verb} ${node}`)
}

describe('the freshness of a view query', () => {
  it('sends the definition to a replica that has no such index, and later needs one call for each shard', async () => {
    const world = await filled({ q: 1 })
    world.calls.length = 0
    expect((await answerOf(world, 'out')).ids).to.deep.equal(ids)
    expect(verbs(world)).to.deep.equal(['scanIndex a', 'buildIndex a', 'scanIndex a'])
    world.calls.length = 0
    expect((await answerOf(world, 'out')).ids).to.deep.equal(ids)
    expect(verbs(world)).to.deep.equal(['scanIndex a'])
  })

  it('with update=true contains the writes before the query', async () => {
    const world = await filled()
    await answerOf(world, 'out')
    await world.write([documentOf('new')])
    expect((await answerOf(world, 'out')).ids).to.include('new')
  })

  it('with update=false reads what is there, prefers a replica that has the index, and builds nothing', async () => {
    const world = await filled()
    expect(await answerOf(world, 'out', { update: false })).to.deep.include({ ids: [], total: 0 })
    for (const node of ['a', 'b', 'c']) {
      for (const position of await world.positionsOn(node)) expect(position ?? 0).to.equal(0)
    }
    const elsewhere = await filled()
    await answerOf(elsewhere, 'c')
    await elsewhere.write([documentOf('new')])
    // Only c has the indexes, and it is the last replica in the order of the shard map of at least one shard.
    expect((await answerOf(elsewhere, 'out', { update: false })).ids).to.deep.equal(ids)
  })

  it('reads the replica that has replaced the one whose build it waited for', async () => {
    const world = new IndexWorld({ q: 1, nodes: ['a'] })
    await world.write([documentOf('before')])
    world.holdBuilds('a')
    const scope = world.viewScope('a')
    const answered = scanView(scope, world.db, everything, request())
    await world.clock.advance(10)
    world.wipe('a')
    const edits = [edit('after', null, documentOf('after'))]
    await world.store('a').updateDocuments({ edits, revsLimit: 1 }, plainCall)
    await world.clock.advance(defaultViewOptions.buildWaitMs)
    world.releaseBuilds('a')
    const { rows, close } = await world.during(answered)
    expect((await world.during(testRows(rows))).map(({ id }) => id)).to.deep.equal(['after'])
    await close()
  })

  it('with update=lazy begins the build after the answer', async () => {
    const world = await filled()
    const scope = world.viewScope('out')
    expect((await answerOf(world, scope, { update: 'lazy' })).ids).to.deep.equal([])
    await world.clock.advance(0)
    expect((await answerOf(world, scope, { update: false })).ids).to.deep.equal(ids)
    await world.write([documentOf('new')])
    expect((await answerOf(world, scope, { update: 'lazy' })).ids).to.deep.equal(ids)
    await world.clock.advance(0)
    expect((await answerOf(world, scope, { update: false })).ids).to.include('new')
  })

  it('begins no build of a lazy query before its rows were read', async () => {
    const world = await filled({ q: 1 })
    await answerOf(world, 'out')
    await world.write([documentOf('new')])
    world.calls.length = 0
    const scope = world.viewScope('out')
    const answer = await scanView(scope, world.db, { ...everything, update: 'lazy' }, request())
    expect(verbs(world)).to.deep.equal(['scanIndex a'])
    await answer.close()
    await world.during(scope.background.idle())
    expect(verbs(world)).to.deep.equal(['scanIndex a', 'buildIndex a'])
  })

  it('with update=false does not continue an answer from an index that was not built', async () => {
    const world = await filled({ q: 1 })
    await answerOf(world, 'out')
    for (const afterPages of [0, 1, 2]) {
      world.faults.set('a', { kind: 'break-scan', afterPages })
      const update = afterPages === 1 ? 'lazy' : false
      const result = await answerOf(world, 'out', { update })
      // A failure before the head leaves the query without an index; it has not begun an answer then.
      expect(result.ids).to.deep.equal(afterPages === 0 ? [] : ids)
      for (const node of ['b', 'c']) world.forgetIndexes(node)
    }
  })

  it('reports after its timeout how far the builds of all shards are, and the builds continue', async () => {
    const world = await filled()
    for (const node of ['a', 'b', 'c']) world.holdBuilds(node)
    const began = world.clock.monotonic()
    const failure = await world.during(scanView(world.viewScope('out'), world.db, everything, request()))
      .then(() => undefined, (error: unknown) => error)
    expect(failure).to.be.instanceOf(IndexBehindError).with.property('error', 'timeout')
    expect((failure as IndexBehindError).progress).to.deep.equal({ done: 0, total: ids.length })
    expect((failure as IndexBehindError).reason).to.include(`0 of ${ids.length} changes`)
    expect(world.clock.monotonic() - began).to.be.within(everything.timeoutMs, everything.timeoutMs + 100)
    for (const node of ['a', 'b', 'c']) world.releaseBuilds(node)
    world.calls.length = 0
    await world.clock.advance(0)
    expect((await answerOf(world, 'out')).ids).to.deep.equal(ids)
    expect(verbs(world).every(call => call.startsWith('scanIndex'))).to.equal(true)
  })

  it('does not wait for a build when another replica has the index', async () => {
    const world = await filled()
    await answerOf(world, 'b')
    world.holdBuilds('a')
    const began = world.clock.monotonic()
    expect((await answerOf(world, 'a')).ids).to.deep.equal(ids)
    expect(world.clock.monotonic() - began).to.be.below(1000)
  })

  it('asks another replica when one fails, falls silent or is replaced during the build', async () => {
    for (const [fault, ms] of [
      [{ kind: 'fail', code: 'storage', verbs: ['buildIndex'] }, 0], [{ kind: 'hang', verbs: ['buildIndex'] }, 300],
    ] as const) {
      const world = await filled({ q: 1 })
      world.faults.set('a', fault)
      const began = world.clock.monotonic()
      expect((await answerOf(world, 'out')).ids).to.deep.equal(ids)
      expect(world.clock.monotonic() - began).to.be.at.most(ms)
    }
    const world = await filled({ q: 1, n: 1 })
    world.holdBuilds('a')
    const answer = scanView(world.viewScope('out'), world.db, everything, request())
    await world.clock.advance(6_000)
    world.wipe('a')
    world.releaseBuilds('a')
    expect(await testRows((await world.during(answer)).rows)).to.deep.equal([])
  })

  it('ends soon when the only replica of a shard falls silent during the build', async () => {
    const world = await filled({ q: 1, n: 1 })
    world.holdBuilds('a')
    const answer = scanView(world.viewScope('out'), world.db, { ...everything, timeoutMs: 60_000 }, request())
    await world.clock.advance(2_000)
    world.faults.set('a', { kind: 'hang' })
    const began = world.clock.monotonic()
    const failure = await world.during(answer).then(() => undefined, (error: unknown) => error)
    expect(failure).to.have.property('error', 'timeout')
    expect(world.clock.monotonic() - began).to.be.below(6_000)
  })

  it('ends at once when a shard has no replica, although others are still being built', async () => {
    const world = await filled({ q: 3, n: 1 })
    for (const node of ['a', 'b']) world.holdBuilds(node)
    world.cut('out', 'c')
    const began = world.clock.monotonic()
    const failure = await world.during(scanView(world.viewScope('out'), world.db, everything, request()))
      .then(() => undefined, (error: unknown) => error)
    expect(failure).to.have.property('error', 'service unavailable')
    expect(world.clock.monotonic() - began).to.be.below(100)
  })
})

describe('the state of a view', () => {
  it('has a fingerprint that is equal through all nodes and changes only when rows change', async () => {
    const world = await filled()
    const { fingerprint } = await answerOf(world, 'out')
    expect((await answerOf(world, 'other')).fingerprint).to.equal(fingerprint)
    await world.write([{ ...documentOf('without rows'), keys: [] }])
    expect((await answerOf(world, 'out')).fingerprint).to.equal(fingerprint)
    await world.write([documentOf('d03', 'another key')])
    const changed = await answerOf(world, 'out')
    expect(changed.fingerprint).not.to.equal(fingerprint)
    expect((await answerOf(world, 'other')).fingerprint).to.equal(changed.fingerprint)
  })

  it('has the same fingerprint when another replica with the same rows answers', async () => {
    const world = await filled()
    const { fingerprint } = await answerOf(world, 'out')
    world.cut('out', 'a')
    expect((await answerOf(world, 'out')).fingerprint).to.equal(fingerprint)
    await world.write([documentOf('d03', 'another key')], 'b', 2)
    const changed = await answerOf(world, 'out')
    expect(changed.fingerprint).not.to.equal(fingerprint)
  })

  it('has another fingerprint when the versions of two shards are exchanged', () => {
    const fingerprints = new IndexFingerprints()
    const fingerprintOf = (versions: readonly string[]): string => {
      const id = { incarnation: 'one', range: { begin: 0, end: 0xffff_ffff } }
      const shards = versions.map(version => {
        const position = { history: 'one', sequence: 7 }
        const head: IndexHead = { kind: 'head', position, readSequence: 7, version, rowCount: 3, rowsBefore: 0 }
        return { place: { id }, node: 'a', head }
      })
      return viewSummary('index', shards, 0, fingerprints).fingerprint
    }
    const fingerprint = fingerprintOf(['1', '2'])
    expect(fingerprintOf(['1', '2'])).to.equal(fingerprint)
    expect(fingerprintOf(['2', '1'])).not.to.equal(fingerprint)
    expect(fingerprintOf(['1'])).not.to.equal(fingerprint)
    expect(fingerprintOf(['1', '2'])).to.equal(fingerprint)
  })

  it('has an update sequence that names what the indexes contain', async () => {
    const world = await filled()
    const before = await answerOf(world, 'out')
    await world.write([documentOf('new')])
    const stale = await answerOf(world, 'out', { update: false })
    expect(stale.updateSequence()).to.equal(before.updateSequence())
    const after = await answerOf(world, 'out')
    const sum = ({ updateSequence }: Result): number => {
      const since = decodeSinceToken(updateSequence())
      return since.kind === 'vector' ? since.parts.reduce((total, { sequence }) => total + sequence, 0) : NaN
    }
    expect([sum(before), sum(after)]).to.deep.equal([ids.length, ids.length + 1])
  })
})
