import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { ManualClock, MemoryLog, MemoryStorage, StorageError } from '@sectional/runtime'
import type { ClusterState } from '../../src/control/cluster-state.ts'
import { ControlStore, type DeleteIntent } from '../../src/control/control-store.ts'
import { DeleteIntents } from '../../src/control/intents.ts'

/** More turns than an intent needs from its decision until it is removed from the disk. */
const turnsMax = 12
const retryMs = 1000

describe('a promised deletion', () => {
  it('is carried out, in whichever turn it is promised while the last earlier one ends', async () => {
    for (let turns = 0; turns <= turnsMax; turns++) {
      const clock = new ManualClock()
      const store = await ControlStore.open(new MemoryStorage())
      const submitted: string[] = []
      const decided = Promise.withResolvers<{ readonly kind: 'done' }>()
      const intents = new DeleteIntents({
        clock, log: new MemoryLog(), store, retryMs, onChange: () => {},
        submit: async command => {
          submitted.push((command as { readonly name: string }).name)
          return await decided.promise
        },
      })
      await intents.add({ name: 'first', incarnation: '1' })
      decided.resolve({ kind: 'done' })
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      await intents.add({ name: 'second', incarnation: '2' })
      await clock.advance(2 * retryMs)
      expect(submitted, `after ${turns} turns`).to.deep.equal(['first', 'second'])
      expect(intents.size).to.equal(0)
      await intents.stop()
      await store.store.close()
    }
  })

  it('stays on the disk until the log has it', async () => {
    const clock = new ManualClock()
    const store = await ControlStore.open(new MemoryStorage())
    const decided = Promise.withResolvers<{ readonly kind: 'done' }>()
    let reached = false
    const intents = new DeleteIntents({
      clock, log: new MemoryLog(), store, retryMs, onChange: () => {},
      submit: async () => {
        if (reached) return await decided.promise
        throw new ApiError('service_unavailable')
      },
    })
    const intent = { name: 'first', incarnation: '1' }
    await intents.add(intent)
    await clock.advance(retryMs / 2)
    expect(await store.intents(), 'no majority answers').to.deep.equal([intent])
    reached = true
    await clock.advance(retryMs)
    expect(await store.intents(), 'the log decides').to.deep.equal([intent])
    decided.resolve({ kind: 'done' })
    await clock.advance(0)
    expect(await store.intents()).to.deep.equal([])
    await intents.stop()
    await store.store.close()
  })

  it('is removed from the disk when it was refused because its write failed, and may be promised again', async () => {
    const clock = new ManualClock()
    const store = await ControlStore.open(new MemoryStorage())
    let failing = true
    /** Writes that fail are on the disk. */
    const failWhenDone = async (write: Promise<void>): Promise<void> => {
      await write
      if (failing) throw new StorageError('io', 'failed')
    }
    const intents = new DeleteIntents({
      clock, log: new MemoryLog(), retryMs, onChange: () => {},
      store: {
        addIntent: (added: DeleteIntent) => failWhenDone(store.addIntent(added)),
        removeIntent: (incarnation: string) => failing
          ? Promise.reject(new StorageError('io', 'failed')) : store.removeIntent(incarnation),
      } as ControlStore,
      submit: async () => { throw new ApiError('service_unavailable') },
    })
    const intent = { name: 'first', incarnation: '1' }
    expect(await intents.add(intent).catch((error: unknown) => error)).to.be.instanceOf(StorageError)
    expect(await store.intents()).to.deep.equal([intent])
    expect(intents.hides('1')).to.equal(false)
    await clock.advance(retryMs)
    failing = false
    await clock.advance(retryMs)
    expect(await store.intents()).to.deep.equal([])
    await intents.add(intent)
    await clock.advance(2 * retryMs)
    expect(await store.intents()).to.deep.equal([intent])
    await intents.stop()
    await store.store.close()
  })

  it('is kept while its database exists in that incarnation', async () => {
    const store = await ControlStore.open(new MemoryStorage())
    const intents = new DeleteIntents({
      clock: new ManualClock(), log: new MemoryLog(), store, retryMs, onChange: () => {},
      submit: async () => { throw new ApiError('service_unavailable') },
    })
    const [kept, gone, again] = ['kept', 'gone', 'again'].map(name => ({ name, incarnation: `${name} 1` }))
    for (const intent of [kept!, gone!, again!]) await intents.add(intent)
    const databases = new Map([kept!, { name: 'again', incarnation: 'again 2' }].map(each => [each.name, each]))
    await intents.settle({ databases } as unknown as ClusterState)
    expect(await store.intents()).to.deep.equal([kept])
    expect(['kept 1', 'gone 1', 'again 1'].map(incarnation => intents.hides(incarnation))).to.deep.equal(
      [true, false, false])
    await intents.stop()
    await store.store.close()
  })
})
