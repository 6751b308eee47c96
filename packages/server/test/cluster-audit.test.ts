import { DatabaseMap, adminOnlySecurity, type ClusterState, type DatabaseRecord } from '@sectional/cluster'
import type { AuditEvent } from '@sectional/http'
import { expect } from 'chai'
import { auditClusterChanges, auditUserDatabase } from '../src/information/cluster-audit.ts'

const node = (name: string, address = `${name}:1`) => ({ name, address, zone: null })

function database(name: string, replicas: DatabaseRecord['shards'][number]['replicas']): DatabaseRecord {
  return {
    name, incarnation: name, partitioned: false, n: 3, shards: [{ range: { begin: 0, end: 0xffffffff }, replicas }],
    security: adminOnlySecurity, revsLimit: 1000, purgedInfosLimit: 1000, autoPurge: {},
  }
}

function state(nodes: readonly ReturnType<typeof node>[], databases: readonly DatabaseRecord[]): ClusterState {
  return {
    clusterId: 'c', index: 1, settings: {}, databases: DatabaseMap.from(databases),
    nodes: Object.fromEntries(nodes.map(record => [record.name, record])),
  }
}

describe('the audit of the cluster', () => {
  /** Returns the events of a series of states. The first one is that of the start. */
  function events(states: readonly (ClusterState | null)[]): unknown[] {
    const seen: AuditEvent[] = []
    let listener: (state: ClusterState) => void = () => {}
    auditClusterChanges({
      state: () => states[0]!, onChange: given => { listener = given; return () => {} },
    }, { record: event => { seen.push(event) } })
    for (const next of states.slice(1)) listener(next!)
    return seen.map(({ event, details }) => [event, details])
  }
  const [a, b, c] = [node('a'), node('b'), node('c')]

  it('has members that join, move and leave, but not those of the start', () => {
    expect(events([state([a, b], []), state([a, b, c], []), state([a, b, node('c', 'd:2')], []), state([a, b], [])]))
      .to.deep.equal([
        ['member_added', { member: 'c', address: 'c:1', zone: null }],
        ['member_changed', { member: 'c', address: 'd:2', zone: null }],
        ['member_removed', { member: 'c' }],
      ])
    expect(events([null, state([a, b], [])])).to.deep.equal([])
  })

  it('has replicas that are added, filled and removed, but not databases that come and go', () => {
    const on = (name: string, filling = false) => ({ node: name, filling })
    const db = (...replicas: ReturnType<typeof on>[]) => state([a, b], [database('x', replicas)])
    expect(events([state([a, b], []), db(on('a')), db(on('a'), on('b', true)), db(on('a'), on('b')), db(on('b')),
      state([a, b], [])])).to.deep.equal([
      ['replicas_changed', { database: 'x', removed: [], added: ['00000000-ffffffff b (filling)'] }],
      ['replicas_changed', {
        database: 'x', removed: ['00000000-ffffffff b (filling)'], added: ['00000000-ffffffff b'],
      }],
      ['replicas_changed', { database: 'x', removed: ['00000000-ffffffff a'], added: [] }],
    ])
  })

  it('has changes of the databases of users', () => {
    const seen: AuditEvent[] = []
    const audit = { record: (event: AuditEvent) => { seen.push(event) } }
    auditUserDatabase({ kind: 'created', database: 'u', q: 1, n: 3 }, audit)
    auditUserDatabase({ kind: 'secured', database: 'u', security: { admins: { names: ['ann'] } } }, audit)
    auditUserDatabase({ kind: 'deleted', database: 'u', outcome: 'deleted' }, audit)
    expect(seen.map(({ event, user, details }) => [event, user, details])).to.deep.equal([
      ['database_created', null, { database: 'u', q: 1, n: 3, partitioned: false }],
      ['security_changed', null, {
        database: 'u', admin_names: ['ann'], admin_roles: [], member_names: [], member_roles: [],
      }],
      ['database_deleted', null, { database: 'u', outcome: 'deleted' }],
    ])
  })
})
