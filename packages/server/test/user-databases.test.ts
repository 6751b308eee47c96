import { expect } from 'chai'
import { ApiError } from '@sectional/core'
import type { ControlPlane } from '@sectional/cluster'
import type { NodeSeams } from '../src/node.ts'
import { MemoryCluster } from './memory-cluster.ts'

const enabled = ['[couch_peruser]', 'enable = true', '[chttpd_auth]', 'iterations = 10', 'min_iterations = 1']
const disabled = enabled.slice(2)
/** Longer than the time from a change to the next checkpoint. */
const checkpointMs = 10_000

async function running(
  count: number, settings: readonly string[] = enabled, seams: NodeSeams = {},
): Promise<MemoryCluster> {
  const cluster = new MemoryCluster(count, seams, settings)
  for (let number = 1; number <= count; number++) await cluster.start(number)
  await cluster.ready()
  return cluster
}

function databaseOf(user: string): string {
  return `/userdb-${Buffer.from(user).toString('hex')}`
}

function documentOf(user: string): string {
  return `/_users/org.couchdb.user:${encodeURIComponent(user)}`
}

/** Writes the user's document through the node, and returns its revision. */
async function write(cluster: MemoryCluster, number: number, user: string): Promise<string> {
  const document = { type: 'user', name: user, roles: [], password: 'x' }
  const { status, body } = await cluster.send(number, 'PUT', documentOf(user), document)
  expect(status).to.equal(201)
  return body.rev
}

async function remove(cluster: MemoryCluster, number: number, user: string): Promise<void> {
  const { body } = await cluster.send(number, 'GET', documentOf(user))
  const { status } = await cluster.send(number, 'DELETE', `${documentOf(user)}?rev=${body._rev}`)
  expect(status).to.equal(200)
}

function has(cluster: MemoryCluster, number: number, user: string): Promise<void> {
  return cluster.until(`the database of ${user}`, async () => {
    const { body } = await cluster.send(number, 'GET', `${databaseOf(user)}/_security`)
    return body.members?.names?.includes(user) === true && body.admins.names.includes(user)
  })
}

function lacks(cluster: MemoryCluster, number: number, user: string): Promise<void> {
  return cluster.until(`no database of ${user}`, async () =>
    (await cluster.send(number, 'GET', databaseOf(user))).status === 404)
}

function leaderOf(cluster: MemoryCluster, numbers: readonly number[]): number {
  return cluster.names.indexOf(cluster.node(numbers[0]!).control.leader()!) + 1
}

async function set(cluster: MemoryCluster, key: string, value: string): Promise<void> {
  const { status } = await cluster.send(1, 'PUT', `/_node/_local/_config/couch_peruser/${key}`, value)
  expect(status).to.equal(200)
}

describe('databases of users', () => {
  let cluster: MemoryCluster

  it('are not taken for made while they cannot be created', async () => {
    let isRefused = false
    const changed = (control: ControlPlane): ControlPlane => new Proxy(control, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name !== 'createDatabase') return typeof value === 'function' ? value.bind(target) : value
        return (...given: Parameters<ControlPlane['createDatabase']>) =>
          isRefused ? Promise.reject(new ApiError('service_unavailable')) : control.createDatabase(...given)
      },
    })
    cluster = await running(1, enabled, { control: changed })
    const checkpoint = async (): Promise<string | undefined> =>
      (await cluster.send(1, 'GET', '/_users/_local/couch_peruser')).body.since
    await write(cluster, 1, 'ann')
    await cluster.until('a checkpoint', async () => await checkpoint() !== undefined)
    const before = await checkpoint()
    isRefused = true
    await write(cluster, 1, 'bob')
    await cluster.clock.advance(checkpointMs)
    expect(await checkpoint()).to.equal(before)
    isRefused = false
    await has(cluster, 1, 'bob')
    await cluster.until('the next checkpoint', async () => await checkpoint() !== before)
  })

  it('keep a change of _security that an administrator makes at the same time', async () => {
    const named = (name: string) => ({ admins: { names: [] }, members: { names: [name] } })
    const chosen = [named('zoe')]
    const changed = (control: ControlPlane): ControlPlane => new Proxy(control, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name !== 'setSecurity') return typeof value === 'function' ? value.bind(target) : value
        return async (...given: Parameters<ControlPlane['setSecurity']>) => {
          // Decided after the object was read that the work changes, and before its change.
          const security = chosen.shift()
          if (security !== undefined) await control.setSecurity(given[0], security)
          return control.setSecurity(...given)
        }
      },
    })
    cluster = await running(1, enabled, { control: changed })
    await write(cluster, 1, 'bob')
    await has(cluster, 1, 'bob')
    expect((await cluster.send(1, 'GET', `${databaseOf('bob')}/_security`)).body).to.deep.equal({
      admins: { names: ['bob'] }, members: { names: ['zoe', 'bob'] },
    })
    chosen.push(named('ann'))
    await remove(cluster, 1, 'bob')
    await cluster.until('the change of the administrator', () => Promise.resolve(chosen.length === 0))
    await cluster.clock.advance(5000)
    expect((await cluster.send(1, 'GET', `${databaseOf('bob')}/_security`)).body).to.deep.equal(named('ann'))
  })

  afterEach(async () => {
    await cluster.close()
    expect(cluster.clock.pendingTimers).to.equal(0)
  })

  it('are created with one shard, for their users only', async () => {
    cluster = await running(1)
    await write(cluster, 1, 'bob')
    await write(cluster, 1, 'Zoë')
    await has(cluster, 1, 'bob')
    await has(cluster, 1, 'Zoë')
    expect((await cluster.send(1, 'GET', '/userdb-626f62')).body.cluster.q).to.equal(1)
    expect((await cluster.send(1, 'GET', '/userdb-626f62/_security')).body).to.deep.equal({
      members: { roles: ['_admin'], names: ['bob'] }, admins: { roles: ['_admin'], names: ['bob'] },
    })
    expect((await cluster.send(1, 'GET', '/_all_dbs')).body).to.deep.equal([
      '_users', 'userdb-5a6fc3ab', 'userdb-626f62',
    ])
  })

  it('are kept without their users when these are deleted, or are deleted with them', async () => {
    cluster = await running(1)
    for (const user of ['ann', 'bob']) await write(cluster, 1, user)
    for (const user of ['ann', 'bob']) await has(cluster, 1, user)
    await remove(cluster, 1, 'ann')
    const security = async (): Promise<unknown> =>
      (await cluster.send(1, 'GET', `${databaseOf('ann')}/_security`)).body.members.names
    await cluster.until('no names', async () => JSON.stringify(await security()) === '[]')
    await set(cluster, 'delete_dbs', 'true')
    await remove(cluster, 1, 'bob')
    await lacks(cluster, 1, 'bob')
    expect((await cluster.send(1, 'GET', databaseOf('ann'))).status).to.equal(200)
    await write(cluster, 1, 'bob')
    await has(cluster, 1, 'bob')
  })

  it('are created for all users when the option is switched on or the prefix changes', async () => {
    cluster = await running(1, disabled)
    for (const user of ['ann', 'bob']) await write(cluster, 1, user)
    await cluster.clock.advance(5000)
    await lacks(cluster, 1, 'bob')
    await set(cluster, 'q', '2')
    await set(cluster, 'enable', 'true')
    for (const user of ['ann', 'bob']) await has(cluster, 1, user)
    expect((await cluster.send(1, 'GET', databaseOf('ann'))).body.cluster.q).to.equal(2)
    await set(cluster, 'database_prefix', 'own/')
    await cluster.until('the new names', async () =>
      (await cluster.send(1, 'GET', '/own%2F626f62')).status === 200)
    await set(cluster, 'enable', 'false')
    await write(cluster, 1, 'carl')
    await cluster.clock.advance(5000)
    expect((await cluster.send(1, 'GET', '/_all_dbs')).body).to.have.length(5)
  })

  it('are not created or deleted again for changes that were carried out', async () => {
    cluster = await running(1, [...enabled.slice(0, 2), 'delete_dbs = true', ...disabled])
    for (const user of ['ann', 'bob']) await write(cluster, 1, user)
    for (const user of ['ann', 'bob']) await has(cluster, 1, user)
    await remove(cluster, 1, 'bob')
    await lacks(cluster, 1, 'bob')
    await cluster.clock.advance(5000)
    await cluster.send(1, 'DELETE', databaseOf('ann'))
    await cluster.send(1, 'PUT', databaseOf('bob'))
    await cluster.stop(1)
    await cluster.start(1)
    await cluster.ready()
    await write(cluster, 1, 'carl')
    await has(cluster, 1, 'carl')
    expect((await cluster.send(1, 'GET', databaseOf('ann'))).status).to.equal(404)
    expect((await cluster.send(1, 'GET', databaseOf('bob'))).status).to.equal(200)
  })

  it('follow the users after a database of users was deleted and created again', async () => {
    cluster = await running(1)
    await write(cluster, 1, 'ann')
    await has(cluster, 1, 'ann')
    await cluster.clock.advance(5000)
    await cluster.send(1, 'DELETE', '/_users')
    await cluster.send(1, 'PUT', '/_users')
    await write(cluster, 1, 'bob')
    await has(cluster, 1, 'bob')
  })

  it('are created after the node that took the write, or the one that has to create them, has died', async () => {
    for (const victim of ['leader', 'follower'] as const) {
      const blocked = new Set<string>()
      cluster = await running(3, enabled, {
        control: control => failing(control, () =>
          blocked.has(control.node) ? new ApiError('service_unavailable') : undefined),
      })
      await write(cluster, 1, 'first')
      await has(cluster, 2, 'first')
      const leader = leaderOf(cluster, [1, 2, 3])
      const dying = victim === 'leader' ? leader : leader % 3 + 1
      blocked.add(cluster.names[leader - 1]!)
      await write(cluster, dying, 'bob')
      expect((await cluster.send(dying, 'GET', databaseOf('bob'))).status).to.equal(404)
      cluster.crash(dying)
      if (victim === 'follower') blocked.clear()
      const left = [1, 2, 3].filter(number => number !== dying)
      for (const number of left) await has(cluster, number, 'bob')
      await write(cluster, left[0]!, 'carl')
      await has(cluster, left[1]!, 'carl')
      await remove(cluster, left[1]!, 'bob')
      await cluster.until('no names', async () => {
        const { body } = await cluster.send(left[0]!, 'GET', `${databaseOf('bob')}/_security`)
        return body.admins.names.length === 0
      })
      await cluster.start(dying)
      await cluster.ready()
      if (victim === 'leader') await cluster.close()
    }
  })

  it('are created when the metadata can be changed again, after attempts that failed', async () => {
    const failures = [new ApiError('service_unavailable'), new Error('the link broke'), new ApiError('file_exists')]
    const attempts: number[] = []
    cluster = await running(1, enabled, {
      control: control => failing(control, name => {
        if (!name.startsWith('userdb-')) return undefined
        attempts.push(cluster.clock.monotonic())
        return failures.shift()
      }),
    })
    await write(cluster, 1, 'bob')
    await has(cluster, 1, 'bob')
    expect(attempts).to.have.length(4)
    expect(attempts[3]! - attempts[0]!).to.be.within(3500, 4000)
  })

  it('are created, later, on a node that may wait for no more changes', async () => {
    cluster = await running(1, enabled, { coordinator: { watchesMax: 0 } })
    for (const user of ['ann', 'bob']) {
      await write(cluster, 1, user)
      await has(cluster, 1, user)
    }
    const { body } = await cluster.send(1, 'GET', '/_users/_local/couch_peruser')
    expect(body).to.include({ database_prefix: 'userdb-' })
  })

  it('do not hold up others when they cannot be created', async () => {
    cluster = await running(1)
    const long = 'x'.repeat(200)
    await write(cluster, 1, long)
    await write(cluster, 1, 'bob')
    await has(cluster, 1, 'bob')
    const warned = cluster.log(1).lines.filter(({ message }) => message.startsWith('the database of a user could not'))
    expect(warned.map(({ fields }) => fields['user'])).to.deep.equal([long])
  })
})

function failing(control: ControlPlane, failure: (name: string) => Error | undefined): ControlPlane {
  return new Proxy(control, {
    get: (target, member) => {
      const value: unknown = Reflect.get(target, member, target)
      if (member === 'createDatabase') {
        return async (name: string, options: Parameters<ControlPlane['createDatabase']>[1]) => {
          const error = failure(name)
          if (error !== undefined) throw error
          return target.createDatabase(name, options)
        }
      }
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
