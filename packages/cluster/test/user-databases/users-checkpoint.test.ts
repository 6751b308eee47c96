import { ApiError } from '@sectional/core'
import { ManualClock, MemoryLog } from '@sectional/runtime'
import { expect } from 'chai'
import { UsersCheckpoint } from '../../src/user-databases/users-checkpoint.ts'
import { ReplicaWorld, request } from '../replica-world.ts'

const delayMs = 1000

describe('the position in the changes of users', () => {
  let world: ReplicaWorld
  let clock: ManualClock

  beforeEach(() => {
    world = new ReplicaWorld({ nodes: ['a'] })
    clock = new ManualClock()
  })

  function checkpoint(failures = 0, prefix = 'userdb-'): UsersCheckpoint {
    const coordinator = world.coordinator('a')
    let left = failures
    return new UsersCheckpoint({
      runtime: { clock, log: new MemoryLog() }, users: world.db, prefix, delayMs, context: request(),
      coordinator: {
        openLocalDocument: (...given) => coordinator.openLocalDocument(...given),
        updateLocalDocument: async (...given) => {
          if (left-- > 0) throw new ApiError('service_unavailable', 'no replica')
          return coordinator.updateLocalDocument(...given)
        },
      },
    })
  }

  async function stored(prefix?: string): Promise<string> {
    return (await checkpoint(0, prefix).load()).kind
  }

  async function token(): Promise<string> {
    return (await world.coordinator('a').databaseInfo(world.db, request())).updateSequence
  }

  it('is saved some time after it has moved, and again after a failure', async () => {
    const since = await token()
    const saved = checkpoint(1)
    expect((await saved.load()).kind).to.equal('start')
    saved.moved(() => since)
    await clock.advance(delayMs)
    expect(await stored()).to.equal('start')
    await clock.advance(delayMs)
    expect(await stored()).to.equal('vector')
    expect(await stored('other-'), 'another prefix').to.equal('start')
    await saved.close()
    expect(clock.pendingTimers).to.equal(0)
  })

  it('is saved at the end, once', async () => {
    const since = await token()
    const saved = checkpoint()
    await saved.load()
    let asked = 0
    saved.moved(() => { asked++; return since })
    await saved.close()
    expect(await stored()).to.equal('vector')
    await saved.close()
    expect([asked, clock.pendingTimers]).to.deep.equal([1, 0])
  })
})
