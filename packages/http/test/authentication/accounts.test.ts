import type { OpenedDocument } from '@sectional/cluster'
import { ManualClock, Turns } from '@sectional/runtime'
import { expect } from 'chai'
import { Accounts } from '../../src/authentication/accounts.ts'
import { MemoryConfiguration, MemoryControlPlane } from '../memory-node.ts'

function document(revision: string): OpenedDocument {
  const body = Buffer.from(JSON.stringify({ name: 'ann', type: 'user', roles: [revision] }))
  return { leaves: [{ revision, deleted: false }], sequence: 1, body } as unknown as OpenedDocument
}

describe('accounts', () => {
  const clock = new ManualClock()
  let control: MemoryControlPlane
  let reads: PromiseWithResolvers<OpenedDocument | null>[]
  let accounts: Accounts
  let configuration: MemoryConfiguration
  beforeEach(async () => {
    control = new MemoryControlPlane(['node1@127.0.0.1'], new Set())
    await control.createDatabase('_users', { q: 1, n: 1, partitioned: false })
    reads = []
    configuration = new MemoryConfiguration({})
    accounts = new Accounts({
      configuration, control, clock, turns: new Turns(clock), accountsMax: 10, refusals: { note: () => {} },
      coordinator: {
        openDocument: () => {
          const read = Promise.withResolvers<OpenedDocument | null>()
          reads.push(read)
          return read.promise
        },
      },
    })
  })
  const rolesOf = async (name: string): Promise<readonly string[] | undefined> => (
    (await accounts.open(name))?.user.roles)

  it('are read once for callers that come together', async () => {
    const both = Promise.all([rolesOf('ann'), rolesOf('ann')])
    reads[0]!.resolve(document('1-a'))
    expect(await both).to.deep.equal([['1-a'], ['1-a']])
    expect(reads).to.have.length(1)
  })

  it('are not kept from a reading that began before a write', async () => {
    const before = rolesOf('ann')
    accounts.forget('ann')
    const after = rolesOf('ann')
    reads[1]!.resolve(document('2-b'))
    expect(await after).to.deep.equal(['2-b'])
    reads[0]!.resolve(document('1-a'))
    await before
    expect(accounts.current('ann')?.user.roles).to.deep.equal(['2-b'])
  })

  it('stay the same object as long as the document has the same leaves', async () => {
    const first = accounts.open('ann')
    reads[0]!.resolve(document('1-a'))
    await clock.advance(3_000)
    expect(accounts.current('ann')).to.equal(undefined)
    const second = accounts.open('ann')
    reads[1]!.resolve(document('1-a'))
    expect(await second).to.equal(await first)
    await clock.advance(3_000)
    const third = accounts.open('ann')
    reads[2]!.resolve(document('2-b'))
    expect(await third).not.to.equal(await first)
  })

  it('of a database that was created again are read again', async () => {
    const first = rolesOf('ann')
    reads[0]!.resolve(document('1-a'))
    await first
    await control.deleteDatabase('_users')
    expect(await rolesOf('ann')).to.equal(undefined)
    await control.createDatabase('_users', { q: 1, n: 1, partitioned: false })
    expect(accounts.current('ann')).to.equal(undefined)
  })

  it('are found in a database that only the leader knows yet', async () => {
    const record = control.state()!.databases.get('_users')!
    await control.deleteDatabase('_users')
    control.late = record
    const found = rolesOf('ann')
    await new Promise<void>(resolve => { setImmediate(resolve) })
    reads[0]!.resolve(document('1-a'))
    expect(await found).to.deep.equal(['1-a'])
  })

  it('are refused with the error of a failed reading, which is not kept', async () => {
    const failing = rolesOf('ann').catch((error: Error) => error.message)
    reads[0]!.reject(new Error('no replica'))
    expect(await failing).to.equal('no replica')
    const next = rolesOf('ann')
    reads[1]!.resolve(null)
    expect(await next).to.equal(undefined)
    expect(accounts.current('ann')).to.equal(null)
  })

  describe('of administrators', () => {
    const hash = `-pbkdf2:sha256-${'00'.repeat(32)},salt,1`
    beforeEach(() => configuration.put('admins', 'ann', hash))

    it('have the roles of the document too, and its password never', async () => {
      const opened = accounts.open('ann')
      reads[0]!.resolve(document('x'))
      const account = await opened
      expect(account?.user).to.deep.equal({ name: 'ann', roles: ['_admin', 'x'], admin: true, salt: 'salt' })
      expect(account?.hash?.salt).to.equal('salt')
      expect(accounts.current('ann')).to.equal(account)
    })

    it('are used while an old document is read again, and take its new roles', async () => {
      const opened = accounts.open('ann')
      reads[0]!.resolve(document('x'))
      const account = await opened
      await clock.advance(3_000)
      expect(accounts.current('ann')).to.equal(account)
      expect(accounts.current('ann')).to.equal(account)
      expect(reads).to.have.length(2)
      reads[1]!.resolve(document('y'))
      await clock.advance(1)
      expect(accounts.current('ann')?.user.roles).to.deep.equal(['_admin', 'y'])
    })

    it('need no document, and wait one second at most for one that cannot be read', async () => {
      const opened = accounts.open('ann')
      await clock.advance(1_000)
      expect((await opened)?.user.roles).to.deep.equal(['_admin'])
      expect(accounts.current('ann')?.user.roles, 'not tried again at once').to.deep.equal(['_admin'])
      reads[0]!.reject(new Error('no quorum'))
      await clock.advance(3_000)
      const again = accounts.open('ann')
      reads[1]!.reject(new Error('no quorum'))
      expect((await again)?.user.roles).to.deep.equal(['_admin'])
      accounts.forget('ann')
      const last = accounts.open('ann')
      reads[2]!.resolve(null)
      expect((await last)?.user.roles).to.deep.equal(['_admin'])
      await control.deleteDatabase('_users')
      expect(accounts.current('ann')?.user.roles).to.deep.equal(['_admin'])
    })
  })
})
