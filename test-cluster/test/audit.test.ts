import { readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { eventually, TestCluster } from '../src/test-cluster.ts'

describe('the audit stream of three nodes', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await TestCluster.start({
      nodes: 3, settings: { 'chttpd_auth/iterations': '10', 'audit/output': 'file', 'audit/file': 'audit.jsonl' },
    })
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const file = (number: number): string => join(cluster.node(number).folder, 'audit.jsonl')
  const lines = (path: string): any[] =>
    readFileSync(path, 'utf8').split('\n').slice(0, -1).map(line => JSON.parse(line))

  /** Waits for an event, and returns its line. */
  const recorded = async (number: number, wanted: (line: any) => boolean, path = file(number)): Promise<any> => {
    let found: any
    await eventually(`an event of node ${number}`, 5_000, async () => {
      found = lines(path).find(wanted)
      expect(found).not.to.equal(undefined)
    })
    return found
  }

  it('has who did what on the node that was asked, and changes of settings on the node that took them', async () => {
    const [first, second] = [cluster.node(1), cluster.node(2)]
    await first.http.send('GET', '/_all_dbs', { auth: 'eve:guess' })
    const failed = await recorded(1, line => line.event === 'authentication_failed')
    expect([failed.node, failed.user, failed.address]).to.deep.equal([first.name, 'eve', '127.0.0.1'])
    expect(readFileSync(file(1), 'utf8')).not.to.include('guess')
    await first.http.send('PUT', '/audited')
    const created = await recorded(1, line => line.event === 'database_created')
    expect([created.user, created.details.database]).to.deep.equal(['admin', 'audited'])
    await first.http.send('PUT', `/_node/${second.name}/_config/uuids/max_count`, { json: '8' })
    const changed = await recorded(2, line => line.event === 'configuration_changed')
    expect([changed.node, changed.user, changed.details.key]).to.deep.equal([second.name, 'admin', 'max_count'])
    expect(statSync(file(1)).mode & 0o777).to.equal(0o600)
  })

  it('cannot be turned off over HTTP', async () => {
    const { status } = await cluster.node(1).http.send('PUT', '/_node/_local/_config/audit/output', { json: 'off' })
    expect(status).to.equal(403)
    await recorded(1, line => line.event === 'permission_refused' && line.details.path.endsWith('/audit/output'))
  })

  it('goes on in a new file after logrotate has renamed the old one', async () => {
    const old = `${file(1)}.1`
    renameSync(file(1), old)
    const before = lines(old).length
    await cluster.node(1).http.send('GET', '/_all_dbs', { auth: null })
    const refused = await recorded(1, line => line.event === 'permission_refused')
    expect([refused.user, refused.details.path]).to.deep.equal([null, '/_all_dbs'])
    expect(lines(old)).to.have.length(before)
  })

  it('has the replicas that are filled again on a node that lost its disk', async () => {
    await cluster.node(3).stop()
    cluster.node(3).wipe()
    cluster.node(3).start()
    await cluster.ready()
    const refilled = await recorded(1, line => line.event === 'replicas_changed')
    expect(refilled.details.added.join()).to.include(cluster.node(3).name)
  })
})
