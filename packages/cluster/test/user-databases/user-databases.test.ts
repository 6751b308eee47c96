import { createMemoryRuntime, ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { UserDatabases } from '../../src/user-databases/user-databases.ts'
import type { UserDatabasesParts } from '../../src/user-databases/user-databases.ts'

describe('the work on the databases of users', () => {
  it('with a new prefix begins when that with the old one has ended', async () => {
    const clock = new ManualClock()
    const settings = {
      createsUserDatabases: true, deletesUserDatabases: false, userDatabaseShards: 1, userDatabasePrefix: 'old-',
      replicasPerShard: 1,
    }
    const state = { databases: new Map([['_users', { name: '_users', incarnation: 'u' }]]) }
    /** Ends the reads of checkpoints, which do not heed the end of the work. */
    const reads: (() => void)[] = []
    const users = new UserDatabases({
      runtime: createMemoryRuntime({ clock }), settings,
      control: { node: 'a', leader: () => 'a', state: () => state, onChange: () => () => {} },
      coordinator: { openLocalDocument: () => new Promise(resolve => { reads.push(() => resolve(null)) }) },
    } as unknown as UserDatabasesParts)
    users.start()
    await clock.advance(0)
    settings.userDatabasePrefix = 'new-'
    users.look()
    await clock.advance(5_000)
    expect(reads).to.have.length(1)
    reads[0]!()
    await clock.advance(0)
    expect(reads).to.have.length(2)
    const stopped = users.stop()
    reads[1]!()
    await stopped
    expect(clock.pendingTimers).to.equal(0)
  })
})
