import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Answer } from '../src/http-client.ts'
import { TestCluster } from '../src/test-cluster.ts'

describe('the configuration of three nodes', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await TestCluster.start({ nodes: 3, settings: { 'chttpd_auth/iterations': '10' } })
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  /** Asks node 1 about the configuration of another node. */
  const ask = (method: string, node: number, path: string, json?: unknown): Promise<Answer> =>
    cluster.node(1).http.send(method, `/_node/${cluster.node(node).name}/_config${path}`, { json })

  it('is read and changed through any of them, and takes effect on the node at once', async () => {
    expect((await ask('PUT', 2, '/uuids/max_count', '7')).body).to.equal('1000')
    expect((await ask('GET', 2, '/uuids/max_count')).body).to.equal('7')
    expect((await ask('GET', 1, '/uuids/max_count')).body).to.equal('1000')
    expect((await cluster.node(2).http.send('GET', '/_uuids?count=8')).status).to.equal(400)
    expect((await ask('DELETE', 2, '/uuids/max_count')).body).to.equal('7')
    expect((await cluster.node(2).http.send('GET', '/_uuids?count=8')).status).to.equal(200)
    expect(cluster.node(2).log()).to.match(/"user":"admin","address":"127.0.0.1".*"key":"max_count","value":"7"/)
  })

  it('is checked by the node that takes a change, whose refusal is returned unchanged', async () => {
    const statuses = async (path: string, json: unknown): Promise<unknown[]> => {
      const [own, other] = [await ask('PUT', 1, path, json), await ask('PUT', 2, path, json)]
      expect(other.body).to.deep.equal(own.body)
      return [own.status, other.status, own.body.error]
    }
    expect(await statuses('/uuids/max_count', 'many')).to.deep.equal([400, 400, 'bad_request'])
    expect(await statuses('/cluster/secret', 'short')).to.deep.equal([403, 403, 'forbidden'])
    expect(await statuses('/couchdb/database_dir', '/tmp')).to.deep.equal([403, 403, 'forbidden'])
    expect(await statuses('/os_daemons/x', '/bin/sh')).to.deep.equal([403, 403, 'forbidden'])
    expect((await ask('DELETE', 2, '/none/none')).body.reason).to.equal('unknown_config_value')
  })

  it('never shows secrets of a node to another one', async () => {
    await ask('PUT', 2, '/chttpd_auth/secret', 'the secret of node two')
    const { body } = await ask('GET', 2, '')
    expect([body.chttpd_auth.secret, body.cluster.secret]).to.deep.equal(['****', '****'])
    expect((await ask('DELETE', 2, '/chttpd_auth/secret')).body).to.equal('****')
  })

  it('is written to a file of the node, and stays after a restart', async () => {
    const node = cluster.node(2)
    const mine = join(node.folder, 'local.ini')
    const before = readFileSync(mine, 'utf8')
    await ask('PUT', 2, '/uuids/max_count', '9')
    const changes = join(node.folder, 'local.d/changed-over-http.ini')
    expect(statSync(changes).mode & 0o777).to.equal(0o600)
    await node.stop()
    node.start()
    await cluster.ready()
    expect((await ask('GET', 2, '/uuids/max_count')).body).to.equal('9')
    expect(readFileSync(mine, 'utf8')).to.equal(before)
    await ask('DELETE', 2, '/uuids/max_count')
    expect(readFileSync(changes, 'utf8')).not.to.include('max_count')
  })

  it('stays as it is when a file that is read again is wrong', async () => {
    const mine = join(cluster.node(2).folder, 'local.ini')
    const before = readFileSync(mine, 'utf8')
    writeFileSync(mine, `${before}\n[uuids]\nmax_count = 3\nalgorithm = dice\n`)
    const refused = await ask('POST', 2, '/_reload')
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'bad_request'])
    expect(refused.body.reason).to.include(`${mine} line ${before.split('\n').length + 3}: [uuids] algorithm = "dice"`)
    expect((await ask('GET', 2, '/uuids')).body).to.include({ max_count: '1000', algorithm: 'sequential' })
    writeFileSync(mine, `${before}\n[uuids]\nmax_count = 3\n`)
    expect((await ask('POST', 2, '/_reload')).body).to.deep.equal({ ok: true })
    expect((await ask('GET', 2, '/uuids/max_count')).body).to.equal('3')
    writeFileSync(mine, before)
    await ask('POST', 2, '/_reload')
  })

  it('of a node that is away is refused with its name, and of an unknown one with 404', async () => {
    await cluster.node(3).stop()
    const away = await ask('PUT', 3, '/uuids/max_count', '9')
    expect([away.status, away.body.error]).to.deep.equal([412, 'nodedown'])
    expect(away.body.reason).to.include(cluster.node(3).name)
    const unknown = await cluster.node(1).http.send('GET', '/_node/nobody@127.0.0.1/_config')
    expect([unknown.status, unknown.body.reason]).to.deep.equal([404, 'no such node: nobody@127.0.0.1'])
    cluster.node(3).start()
    await cluster.ready()
  })
})
