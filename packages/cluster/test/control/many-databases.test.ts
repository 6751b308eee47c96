import { expect } from 'chai'
import { HostedShards } from '../../src/anti-entropy/hosted-shards.ts'
import { LackingDatabases } from '../../src/control/lacking-databases.ts'
import { CountedDatabases } from './counted-databases.ts'

const whole = { begin: 0, end: 0xffffffff }

describe('a change of metadata among many databases', () => {
  it('is applied without reading the other databases', () => {
    const databases = new CountedDatabases(['a', 'b'], 1000)
    databases.create('one more')
    databases.apply({ type: 'set-security', id: 's', name: 'one more', incarnation: 'of one more', security: {} })
    databases.apply({ type: 'replica-damaged', id: 'd', incarnation: 'of one more', range: whole, node: 'a' })
    databases.apply({ type: 'replica-filled', id: 'f', incarnation: 'of one more', range: whole, node: 'a' })
    databases.apply({ type: 'delete-database', id: 'x', name: 'one more', incarnation: 'of one more' })
    expect(databases.reads).to.equal(0)
    expect(databases.state.databases.size).to.equal(1000)
  })

  it('makes anti-entropy read that database alone', () => {
    const databases = new CountedDatabases(['a', 'b'], 1000)
    const hosted = new HostedShards('a')
    expect(hosted.update(databases.state).added.length).to.equal(1000)
    databases.reads = 0
    databases.create('one more')
    expect(hosted.update(databases.state).added.map(({ db }) => db.name)).to.deep.equal(['one more'])
    databases.apply({ type: 'replica-damaged', id: 'd', incarnation: 'of one more', range: whole, node: 'a' })
    expect(hosted.update(databases.state).changed.map(({ db, filling }) =>
      [db.name, filling])).to.deep.equal([['one more', true]])
    databases.apply({ type: 'delete-database', id: 'x', name: 'one more', incarnation: 'of one more' })
    expect(hosted.update(databases.state).removed.map(({ db }) => db.name)).to.deep.equal(['one more'])
    expect(databases.reads).to.equal(0)
    expect(hosted.size).to.equal(1000)
  })

  it('makes the leader read that database alone, and all databases when the members have changed', () => {
    const databases = new CountedDatabases(['a', 'b'], 1000)
    const lacking = new LackingDatabases()
    expect(lacking.update(databases.state).size).to.equal(0)
    databases.reads = 0
    databases.create('one more')
    expect(lacking.update(databases.state).size).to.equal(0)
    expect(databases.reads).to.equal(0)
    databases.apply({ type: 'admit-node', id: 'c', node: 'c', address: 'c:1', zone: null, fresh: true })
    expect(lacking.update(databases.state).size).to.equal(1001)
    databases.apply({ type: 'extend-databases', id: 'e', names: ['db7', 'one more'] })
    expect(lacking.update(databases.state).size).to.equal(999)
    databases.apply({ type: 'delete-database', id: 'x', name: 'db8', incarnation: 'of db8' })
    expect(lacking.update(databases.state).has('db8')).to.equal(false)
  })
})
