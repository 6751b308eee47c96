import { expect } from 'chai'
import { MemoryCluster, type MemoryAnswer } from './memory-cluster.ts'

describe('an index of queries', () => {
  let cluster: MemoryCluster

  before(async () => {
    cluster = new MemoryCluster(1, {}, [
      '[couchdb]', 'users_db_security_editable = true', '[chttpd_auth]', 'iterations = 1',
    ])
    await cluster.start(1)
    await cluster.ready()
    await create('/db?q=2', [{ _id: 'a', n: 2, kind: 'x' }, { _id: 'b', n: 1, kind: 'x' }, { _id: 'c', n: 1 }])
    await create('/parts?partitioned=true', [{ _id: 'p:1', n: 1, kind: 'x' }, { _id: 'q:1', n: 1, kind: 'x' }])
  })
  after(() => cluster.close())

  const send = (method: string, path: string, json?: unknown, login?: string): Promise<MemoryAnswer> =>
    cluster.send(1, method, path, json, login)
  async function create(path: string, docs: readonly object[]): Promise<void> {
    const [name] = path.split('?')
    expect((await send('PUT', path)).status).to.equal(201)
    expect((await send('POST', `${name}/_bulk_docs`, { docs })).status).to.equal(201)
    await index(name!)
  }
  async function index(path: string): Promise<void> {
    const body = { index: { fields: ['kind', 'n'] }, ddoc: 'd', name: 'kind-n' }
    expect((await send('POST', `${path}/_index`, body)).status).to.equal(200)
  }

  it('can be read like a view', async () => {
    const read = async (query: object): Promise<unknown> =>
      (await send('POST', '/db/_design/d/_view/kind-n', query)).body
    const rows = [{ id: 'b', key: ['x', 1], value: null }, { id: 'a', key: ['x', 2], value: null }]
    expect(await read({ reduce: false })).to.deep.equal({ total_rows: 2, offset: 0, rows })
    expect(await read({ reduce: false, key: ['x', 2] })).to.deep.equal({ total_rows: 2, offset: 1, rows: [rows[1]] })
    expect(await read({})).to.deep.equal({ rows: [{ key: null, value: 2 }] })
    expect(await read({ group_level: 1 })).to.deep.equal({ rows: [{ key: ['x'], value: 2 }] })
    const missing = await send('GET', '/db/_design/d/_view/other')
    expect([missing.status, missing.body]).to.deep.equal([404, { error: 'not_found', reason: 'missing_named_view' }])
  })

  it('can be read by partition', async () => {
    const { body } = await send('GET', '/parts/_partition/q/_design/d/_view/kind-n?reduce=false&sorted=false')
    expect(body).to.deep.equal({ rows: [{ id: 'q:1', key: ['x', 1], value: null }] })
    expect((await send('GET', '/parts/_design/d/_view/kind-n')).status).to.equal(400)
  })

  it('shows no user the documents of others', async () => {
    const user = { type: 'user', name: 'bob', roles: [], password: 'pw' }
    expect((await send('PUT', '/_users/org.couchdb.user:bob', user)).status).to.equal(201)
    expect((await send('PUT', '/_users/_security', {})).status).to.equal(200)
    await index('/_users')
    for (const path of ['_view/kind-n', '_list/l/kind-n']) {
      expect((await send('GET', `/_users/_design/d/${path}`, undefined, 'bob:pw')).status).to.be.oneOf([401, 403])
    }
    expect((await send('GET', '/_users/_design/d/_view/kind-n')).status).to.equal(200)
  })

  it('has no dry run', async () => {
    const { status, body } = await send('POST', '/db/_design/d/_view/kind-n?dry_run=true', {})
    expect([status, body]).to.deep.equal([
      400, { error: 'bad_request', reason: '`dry_run` needs a view in JavaScript' },
    ])
  })
})
