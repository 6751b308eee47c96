import { expect } from 'chai'
import { revisionHash } from '@sectional/core'
import type { DocumentEdit, ShardReplica } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryDisk } from '@sectional/runtime'
import { openCopy } from '../../src/checkers/disk-contents.ts'
import { ReplicaCalls } from '../../src/drills/replica-calls.ts'
import { BlobLeaseWatch } from '../../src/models/blob-lease-watch.ts'
import { KnownDigests } from '../../src/models/known-digests.ts'
import { ModelledReplica } from '../../src/models/modelled-replica.ts'
import { Dice } from '../../src/world/dice.ts'

const shard = { incarnation: 'a'.repeat(32), range: { begin: 0, end: 0xffff_ffff } }
const call = { timeoutMs: 1000 }
const body = Buffer.from('{}')

/** A modelled engine, and what was found. */
async function modelledEngine(
  partitioned: boolean, change: (engine: ShardReplica) => Partial<ShardReplica> = () => ({}),
): Promise<{ modelled: ModelledReplica; findings: string[]; clock: ManualClock; close: () => Promise<void> }> {
  const disk = new MemoryDisk()
  const host = await openCopy(disk)
  const engine = await host.create(shard, partitioned)
  const findings: string[] = []
  const clock = new ManualClock()
  const changed = changedReplica(engine, change(engine))
  const modelled = new ModelledReplica({
    engine: changed, declines: () => false, compactedBytes: () => 0, hasPeers: () => false,
    store: engine.records.store, prefix: engine.records.keys.prefix, name: 'replica', clock,
    attemptOf: (id, revision) => engine.records.attempts.of(engine.records.keys.prefix, id, revision),
    partitioned, digests: new KnownDigests(), leases: new BlobLeaseWatch(clock),
    hasContent: hash => disk.blobs.blobs('attachments').has(hash), alive: () => true,
    afterEvent: work => { setImmediate(work) }, onFirstContents: () => {},
    fail: (rule, finding) => { findings.push(`${rule}: ${finding}`) },
  })
  return { modelled, findings, clock, close: () => host.close() }
}

function changedReplica(engine: ShardReplica, changes: Partial<ShardReplica>): ShardReplica {
  return new Proxy(engine, {
    get: (target, name) => {
      const value: unknown = Object.hasOwn(changes, name)
        ? changes[name as keyof ShardReplica] : Reflect.get(target, name, target)
      return typeof value === 'function' && !Object.hasOwn(changes, name) ? value.bind(target) : value
    },
  })
}

function edit(id: string, parent: string | null = null, attempt = 1): DocumentEdit {
  const made = { parent, deleted: false, body }
  return { ...made, id, attempt, revisionHash: revisionHash(made) }
}

async function writes(modelled: ModelledReplica, ...edits: DocumentEdit[]): Promise<void> {
  await modelled.shown.updateDocuments({ edits, revsLimit: 1000 }, call)
}

describe('a replica beside its model', () => {
  for (const partitioned of [false, true]) {
    it(`gives the same answers to random calls${partitioned ? ' in a partitioned database' : ''}`, async () => {
      for (let seed = 1; seed <= 5; seed++) {
        const dice = new Dice(seed)
        const { modelled, findings, close } = await modelledEngine(partitioned)
        const calls = new ReplicaCalls({ dice, partitioned, after: (_, work) => { setImmediate(work) } })
        for (let burst = 0; burst < 12; burst++) {
          const { shown } = modelled
          await Promise.all(Array.from({ length: dice.integer(1, 5) }, () => calls.one(shown, [shown])))
          expect(await modelled.audit(dice), 'audited').to.equal(true)
        }
        expect(findings, `seed ${seed}`).to.deep.equal([])
        await close()
      }
    }).timeout(20_000)
  }

  it('knows the attempts of replaced revisions also after its model was loaded again', async () => {
    const { modelled: { shown }, findings, close } = await modelledEngine(false)
    const store = (ids: readonly string[], attempt: number): Promise<unknown> => shown.storeRevisions(
      { revisions: [{ id: 'a', path: { start: ids.length, ids }, deleted: false, body, attempt }], revsLimit: 1000 },
      call,
    )
    await store(['b'], 1)
    await store(['c', 'b'], 2)
    await shown.trimPurges(0, call)
    expect(await store(['b'], 3)).to.deep.equal({ rivals: [0] })
    await new Promise(resolve => { setImmediate(resolve) })
    expect(findings).to.deep.equal([])
    await close()
  })

  it('is found to forget attempts', async () => {
    const { modelled, findings, close } = await modelledEngine(false, engine => ({
      updateDocuments: (request, context) => engine.updateDocuments(
        { ...request, edits: request.edits.map(({ attempt: _, ...rest }) => rest) }, context),
    }))
    await writes(modelled, edit('a'))
    await modelled.audit(new Dice(1))
    expect(findings.join()).to.match(/^replica-model: .* as a, not /)
    await close()
  })

  it('is found to answer for another history', async () => {
    const { modelled, findings, close } = await modelledEngine(false, engine => ({
      updateDocuments: (request, { history: _, ...context }) => engine.updateDocuments(request, context),
    }))
    await modelled.shown.updateDocuments({ edits: [edit('a')], revsLimit: 9 }, { ...call, history: 'another' })
    expect(findings.join()).to.match(/^other-history: /)
    await close()
  })

  it('is found to accept attachments without their content', async () => {
    const { modelled, findings, close } = await modelledEngine(false, engine => ({
      updateDocuments: ({ edits, ...request }, context) => engine.updateDocuments(
        { ...request, edits: edits.map(({ attachments: _, ...rest }) => rest) }, context),
    }))
    const attachment = {
      name: 'a', contentType: '', revpos: 1, digest: 'AAAAAAAAAAAAAAAAAAAAAA==', blob: '0'.repeat(64), length: 1,
      encoding: 'identity' as const, storedLength: 1,
    }
    await writes(modelled, { ...edit('a'), attachments: [attachment] })
    expect(findings.join()).to.match(/^kept-content: replica answers updateDocuments with a, /)
    await close()
  })

  it('is found to let readers go on that have not read a forgotten purge', async () => {
    const { modelled, findings, close } = await modelledEngine(false, engine => ({
      scanChanges: ({ purges, ...request }, context) =>
        engine.scanChanges({ ...request, ...(purges && request.since === 0 && { purges }) }, context),
    }))
    await writes(modelled, edit('a'))
    await modelled.audit(new Dice(1))
    const path = { start: 1, ids: [edit('a').revisionHash] }
    await modelled.shown.purgeDocuments({ purges: [{ uuid: 'p', id: 'a', paths: [path] }] }, call)
    await modelled.shown.trimPurges(1, call)
    await modelled.audit(new Dice(1))
    expect(findings.join()).to.match(/^replica-model: replica: a reader of all changes and purges since 1 has /)
    await close()
  })

  it('is found to answer late', async () => {
    const { modelled, findings, clock, close } = await modelledEngine(false, () => ({
      updateDocuments: () => new Promise(() => {}),
    }))
    void writes(modelled, edit('a'))
    await new Promise(resolve => { setImmediate(resolve) })
    await clock.advance(1000)
    expect(findings).to.deep.equal([])
    await clock.advance(1000)
    expect(findings.join()).to.match(/^call-deadlines: updateDocuments /)
    await close()
  })

  it('is found to leave calls waiting that a change concerns', async () => {
    const { modelled, close } = await modelledEngine(false, () => ({ waitForChange: () => new Promise(() => {}) }))
    await modelled.audit(new Dice(1))
    void modelled.shown.waitForChange({ history: modelled.history!, sequence: 0 }, call)
    expect(await modelled.overdueWait()).to.equal(null)
    await writes(modelled, edit('a'))
    expect(await modelled.overdueWait()).to.match(/^a call waits at replica for a change after 0/)
    await close()
  })

  it('is found to answer before an edit is durable on which the answer relies', async () => {
    let conflicts = 0
    const pending = Promise.withResolvers<void>()
    const { modelled, findings, close } = await modelledEngine(false, engine => ({
      updateDocuments: async (request, context) => {
        const reply = await engine.updateDocuments(request, context)
        if (conflicts++ === 0) await pending.promise
        return reply
      },
    }))
    const first = writes(modelled, edit('a'))
    await new Promise(resolve => { setImmediate(resolve) })
    await writes(modelled, edit('a', null, 2))
    await new Promise(resolve => { setImmediate(resolve) })
    expect(findings.join()).to.match(/^durable-answers: /)
    pending.resolve()
    await first
    await close()
  })
})

describe('digests of replicas', () => {
  it('contradict when they are equal for different leaves', async () => {
    const digests = new KnownDigests()
    const replicas = ['b', 'c'].map(hash => {
      const replica = new MemoryShardReplica({ history: hash })
      void replica.storeRevisions({
        revisions: [{ id: 'a', path: { start: 1, ids: [hash] }, deleted: false, body }], revsLimit: 9,
      }, call)
      return replica
    })
    for (const replica of replicas) expect(await digests.contradiction(replica, () => true)).to.equal(null)
    const blind = replicas.map(replica => changedReplica(replica, {
      upkeep: new Proxy(replica.upkeep, {
        get: (target, name) => name === 'digestDocuments'
          ? async (count: number) => new Array<string>(count).fill('0')
          : (target as any)[name].bind(target),
      }),
    }))
    expect(await digests.contradiction(blind[0]!, () => true)).to.match(/have the digests|stands for/)
  })
})
