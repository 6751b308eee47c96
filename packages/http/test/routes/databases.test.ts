import { expect } from 'chai'
import { replicasPerShardMax } from '@sectional/cluster'
import { ApiError } from '@sectional/core'
import { MemoryNode } from '../memory-node.ts'

describe('databases', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  it('are created, described and deleted', async () => {
    const created = await node.put('/db?q=2')
    expect([created.status, created.headers['location'], created.json]).to.deep.equal([
      201, 'http://node.example:5984/db', { ok: true },
    ])
    expect(Object.keys((await node.get('/db')).json)).to.deep.equal([
      'instance_start_time', 'db_name', 'purge_seq', 'update_seq', 'sizes', 'props', 'doc_del_count', 'doc_count',
      'disk_format_version', 'compact_running', 'cluster',
    ])
    expect((await node.put('/db')).json.error).to.equal('file_exists')
    expect((await node.delete('/db?rev=1-a')).status).to.equal(400)
    expect((await node.delete('/db')).json).to.deep.equal({ ok: true })
    expect((await node.delete('/db')).json.reason).to.equal('Database does not exist.')
  })

  it('answer 202 to a deletion that waits for the log', async () => {
    await node.put('/db')
    node.control.deleteDatabase = async () => 'accepted'
    expect((await node.delete('/db')).status).to.equal(202)
  })

  it('are 404 for a request that runs when they are deleted, and 500 where shards cannot be opened', async () => {
    await node.put('/db')
    let deleted = false
    node.coordinator.openDocument = async () => {
      if (deleted) await node.control.deleteDatabase('db')
      throw new ApiError('internal_server_error', 'No DB shards could be opened.')
    }
    expect((await node.get('/db/a')).json).to.deep.equal({
      error: 'internal_server_error', reason: 'No DB shards could be opened.',
    })
    deleted = true
    expect((await node.get('/db/a')).json).to.deep.equal({ error: 'not_found', reason: 'Database does not exist.' })
  })

  it('check their parameters', async () => {
    for (const [query, reason] of [
      ['q=0', 'The `q` value should be a positive integer.'], ['q=1.5', 'The `q` value should be a positive integer.'],
      ['n=many', 'The `n` value should be a positive integer.'],
      ['q=257', 'The `q` value should be at most 256.'], ['q=9999999999', 'The `q` value should be at most 256.'],
      ['n=0', 'The `n` value should be a positive integer.'],
      ['engine=foo', 'invalid_engine_extension'], ['engine=', 'invalid_engine_extension'],
      ['partitioned=maybe', 'Invalid `partitioned` parameter'],
      ['placement=metro', 'The `placement` value should be in a format `zone:n`.'],
    ] as const) expect((await node.put(`/db?${query}`)).json).to.deep.equal({ error: 'bad_request', reason })
    expect((await node.put('/db?placement=a:1')).status).to.equal(501)
    const systemNames = ['_users', '_replicator', '_global_changes', '_metadata', '_dbs', '_nodes']
    for (const name of [...systemNames, 'x%2F_users', 'x%2Fy%2F_replicator']) {
      const refused = await node.put(`/${name}?partitioned=true`)
      expect([refused.status, refused.json.reason]).to.deep.equal([400, 'Cannot partition a system database'])
    }
    for (const name of ['x_users', '_users%2Fx', 'x%2F_users%2Fx', 'x%2F_user']) {
      expect((await node.put(`/x${name}?partitioned=true`)).status, name).to.equal(201)
    }
    expect((await node.put('/_dbs')).status).to.equal(404)
    expect((await node.put('/Capital')).json.error).to.equal('illegal_database_name')
    await node.put('/there')
    for (const name of ['there', 'Capital']) {
      expect((await node.put(`/${name}?q=0`)).json.error, 'parameters come first').to.equal('bad_request')
    }
    expect((await node.delete('/Not-A-Name')).json.error).to.equal('illegal_database_name')
    expect((await node.get('/Capital')).json.error).to.equal('not_found')
  })

  it('have no more replicas than there are nodes, however many are asked for', async () => {
    for (const [index, n] of ['2', '100', '9999999999'].entries()) {
      expect((await node.put(`/db${index}?n=${n}`)).status).to.equal(201)
      expect((await node.get(`/db${index}`)).json.cluster.n).to.equal(1)
    }
  })

  it('have at most as many replicas as cluster/n allows, however many nodes there are', async () => {
    const large = new MemoryNode({ nodes: Array.from({ length: 40 }, (_, index) => `node${index + 1}@127.0.0.1`) })
    expect((await large.put('/db?n=100')).status).to.equal(201)
    expect((await large.get('/db')).json.cluster.n).to.equal(replicasPerShardMax)
    await large.stop()
  })

  it('may be created with the name of the only storage engine', async () => {
    expect((await node.put('/db?engine=couch')).status).to.equal(201)
  })

  it('take q and n from the configuration when not given', async () => {
    node.configuration.put('cluster', 'q', '5')
    await node.put('/db')
    expect((await node.get('/db')).json.cluster.q).to.equal(5)
  })

  it('are listed in byte order by range, with a tag', async () => {
    for (const name of ['b', 'a', 'c%2Fd', '_users']) await node.put(`/${name}`)
    const list = async (query: string) => (await node.get(`/_all_dbs?${query}`)).json
    expect(await list('')).to.deep.equal(['_users', 'a', 'b', 'c/d'])
    expect(await list('startkey=%22a%22&limit=2')).to.deep.equal(['a', 'b'])
    expect(await list('descending=true&skip=1&startkey=%22b%22')).to.deep.equal(['a', '_users'])
    expect(await list('endkey=%22b%22&inclusive_end=false')).to.deep.equal(['_users', 'a'])
    expect(await list('key=%22b%22')).to.deep.equal(['b'])
    expect(await list('keys=[%22b%22,%22z%22]')).to.deep.equal(['b'])
    expect((await list('limit=x')).reason).to.equal('Invalid value for integer: "x"')
    const { headers } = await node.get('/_all_dbs')
    expect((await node.get('/_all_dbs', { 'if-none-match': headers['etag']! })).status).to.equal(304)
  })

  it('are described together', async () => {
    await node.put('/a')
    const infos = (await node.get('/_dbs_info')).json
    expect([infos[0].key, infos[0].info.db_name]).to.deep.equal(['a', 'a'])
    const asked = (await node.post('/_dbs_info', { keys: ['none', 'a', 5] })).json
    expect([asked[0], asked[1].key, asked[2]]).to.deep.equal([
      { key: 'none', error: 'not_found' }, 'a', { key: 5, error: 'not_found' },
    ])
    expect((await node.post('/_dbs_info', {})).json.reason).to.equal('`keys` member must exist.')
    expect((await node.post('/_dbs_info', { keys: 5 })).json.reason).to.equal('`keys` member must be an array.')
    node.configuration.put('chttpd', 'max_db_number_for_dbs_info_req', '1')
    expect((await node.post('/_dbs_info', { keys: ['a', 'b'] })).json.reason).to.equal('too_many_keys')
  })

  it('tell the range of a document id', async () => {
    await node.put('/db?q=8')
    const range = async (id: string) => (await node.get(`/db/_shards/${id}`)).json.range
    const ids = ['doc-1', 'user:42', '%C3%BC', '_design%2Fx']
    expect(await Promise.all(ids.map(range))).to.deep.equal([
      'e0000000-ffffffff', '60000000-7fffffff', '60000000-7fffffff', '60000000-7fffffff',
    ])
    await node.put('/parts?q=8&partitioned=true')
    const same = await node.get('/parts/_shards/p1:zzz')
    expect(same.json.range).to.equal('20000000-3fffffff')
  })

  it('keep limits and auto-purge settings, and refuse nonsense', async () => {
    await node.put('/db')
    for (const [name, key] of [['_revs_limit', 'revs_limit'], ['_purged_infos_limit', 'purged_infos_limit']] as const) {
      expect((await node.get(`/db/${name}`)).json).to.equal(1000)
      expect((await node.put(`/db/${name}`, '25', { 'content-type': 'text/plain' })).json).to.deep.equal({ ok: true })
      expect((await node.get(`/db/${name}`)).json).to.equal(25)
      for (const value of ['0', '-5', '1.5', '"many"', '99999999999']) {
        expect((await node.put(`/db/${name}`, value)).json).to.deep.equal({
          error: 'bad_request', reason: `\`${key}\` must be positive integer`,
        })
      }
      expect((await node.put(`/db/${name}`, '')).json.reason).to.equal('invalid UTF-8 JSON')
    }
    expect((await node.put('/db/_auto_purge', { deleted_document_ttl: '3_mon' })).status).to.equal(202)
    for (const body of [
      { deleted_document_ttl: 5 }, { deleted_document_ttl: '' }, { deleted_document_ttl: 'soon' },
      { deleted_document_ttl: '-1_hour' }, { deleted_document_ttl: '3_monday' },
      { deleted_document_ttl: '1_day', other: 1 }, [], 'text',
    ]) {
      expect((await node.put('/db/_auto_purge', JSON.stringify(body))).status).to.equal(400)
    }
    expect((await node.get('/db/_auto_purge')).json).to.deep.equal({ deleted_document_ttl: '3_mon' })
    await node.put('/db/_auto_purge', {})
    expect((await node.get('/db/_auto_purge')).json).to.deep.equal({})
  })

  it('accept maintenance calls that have nothing left to do', async () => {
    await node.put('/db')
    expect((await node.post('/db/_ensure_full_commit', {})).json).to.deep.equal({ ok: true, instance_start_time: '0' })
    expect((await node.post('/db/_ensure_full_commit')).status).to.equal(415)
    expect((await node.post('/db/_sync_shards')).status).to.equal(202)
    expect((await node.post('/db/_temp_view', {})).status).to.equal(410)
    expect((await node.get('/db/_design/d/_search/i')).status).to.equal(501)
  })
})
