import { expect } from 'chai'
import { MemoryNode, memoryNodeInformation } from '../memory-node.ts'
import { answerNodeQuestion } from '../../src/configuration/node-questions.ts'

describe('server endpoints', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode({ nodes: ['node1@127.0.0.1', 'node2@127.0.0.1'] }) })
  afterEach(() => node.stop())

  it('greet with what clients look for', async () => {
    const greeting = (await node.get('/?any=thing')).json
    expect(greeting).to.deep.include({
      couchdb: 'Welcome', uuid: 'c0ffee', vendor: { name: 'Sectional', version: '0.1.0' },
    })
    expect((await node.get('/favicon.ico')).headers).to.include({
      'content-type': 'image/x-icon', 'cache-control': 'public, max-age=31536000',
      'expires': new Date(node.clock.now() + 31_536_000_000).toUTCString(),
    })
  })

  it('tell load balancers when to stay away', async () => {
    expect((await node.get('/_up')).json).to.deep.equal({ status: 'ok', seeds: {} })
    node.configuration.put('couchdb', 'maintenance_mode', 'true')
    const away = await node.get('/_up')
    expect([away.status, away.json]).to.deep.equal([404, { status: 'maintenance_mode' }])
    node.configuration.put('couchdb', 'maintenance_mode', 'nolb')
    expect((await node.get('/_up')).json).to.deep.equal({ status: 'nolb' })
  })

  it('keep serving requests while load balancers are told not to send any (nolb)', async () => {
    node.control.notReady = 'the metadata here lags behind'
    const up = await node.get('/_up')
    expect([up.status, up.json]).to.deep.equal([
      404, { status: 'seeding', reason: 'the metadata here lags behind', seeds: {} },
    ])
    expect((await node.put('/db')).status).to.equal(201)
  })

  it('hand out sequential identifiers, uncached', async () => {
    const answer = await node.get('/_uuids?count=3')
    expect(answer.headers).to.include({ 'cache-control': 'no-cache', 'pragma': 'no-cache' })
    const uuids: string[] = answer.json.uuids
    expect(uuids).to.deep.equal(uuids.toSorted())
    expect(new Set(uuids.map(uuid => uuid.slice(0, 26))).size).to.equal(1)
    expect(new Set(uuids).size).to.equal(3)
    for (const count of ['', '-1', '2.5', 'abc']) {
      expect((await node.get(`/_uuids?count=${count}`)).json.reason).to.equal('count must be a positive integer')
    }
    expect((await node.get('/_uuids?count=1001')).json.reason).to.equal('count parameter too large')
    expect((await node.get('/_uuids?count=0')).json.uuids).to.deep.equal([])
  })

  it('hand out identifiers by the configured algorithm', async () => {
    const forms: Readonly<Record<string, RegExp>> = {
      random: /^[0-9a-f]{32}$/, utc_random: /^0[0-9a-f]{31}$/, utc_id: /^0[0-9a-f]{13}@here$/,
      uuid_v7: /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/,
    }
    node.configuration.put('uuids', 'utc_id_suffix', '@here')
    for (const [algorithm, form] of Object.entries(forms)) {
      node.configuration.put('uuids', 'algorithm', algorithm)
      const { uuids } = (await node.get('/_uuids?count=50')).json as { readonly uuids: readonly string[] }
      for (const uuid of uuids) expect(uuid).to.match(form)
      expect(new Set(uuids).size).to.equal(50)
    }
    await node.put('/db')
    const { id } = (await node.post('/db', {})).json
    expect(id).to.match(forms['uuid_v7']!)
    node.configuration.put('uuids', 'algorithm', 'utc_id')
    const parts = await node.get(`/db/${id}?open_revs=all`, { accept: 'multipart/mixed' })
    expect(parts.headers['content-type'], 'a boundary that nobody can foresee').to.match(/boundary="[0-9a-f]{32}"$/)
  })

  it('show members and connected nodes', async () => {
    node.down.add('node2@127.0.0.1')
    expect((await node.get('/_membership')).json).to.deep.equal({
      all_nodes: ['node1@127.0.0.1'], cluster_nodes: ['node1@127.0.0.1', 'node2@127.0.0.1'],
    })
  })

  it('report on nodes, here and elsewhere', async () => {
    expect((await node.get('/_node/_local')).json).to.deep.equal({ name: 'node1@127.0.0.1' })
    expect((await node.get('/_node/node2@127.0.0.1')).json).to.deep.equal({ name: 'node2@127.0.0.1' })
    expect((await node.get('/_node/nosuch@x')).json).to.deep.equal({
      error: 'not_found', reason: 'no such node: nosuch@x',
    })
    expect((await node.get('/_node')).json.reason).to.equal('Incomplete path to _node request')
    expect((await node.get('/_node/_local/_stats/couchdb/httpd/requests')).json.type).to.equal('counter')
    const unknown = await node.get('/_node/_local/_stats/couchdb/constructor')
    expect([unknown.status, unknown.json]).to.deep.equal([200, null])
    const prometheus = await node.get('/_node/_local/_prometheus')
    expect([prometheus.headers['content-type'], prometheus.text]).to.deep.equal(['text/plain; version=2.0', 'up 1\n'])
    expect((await node.get('/_node/node2@127.0.0.1/_system')).json).to.equal('answer of node2@127.0.0.1')
    node.down.add('node2@127.0.0.1')
    const down = await node.get('/_node/node2@127.0.0.1/_system')
    expect([down.status, down.json]).to.deep.equal([412, { error: 'nodedown', reason: 'node2@127.0.0.1 is down' }])
  })

  it('report the state of the cluster and create what setup scripts wait for, once', async () => {
    const state = async () => (await node.get('/_cluster_setup')).json.state
    const act = (body: unknown) => node.post('/_cluster_setup', body)
    expect(await state()).to.equal('cluster_enabled')
    expect((await act({ action: 'enable_cluster' })).json.reason).to.equal('Cluster is already enabled')
    expect((await act({ action: 'add_node', host: '127.0.0.1' })).status).to.equal(201)
    expect((await act({ action: 'add_node', host: 'elsewhere' })).json.reason).to.equal(
      'Add node failed. Invalid Host and/or Port.',
    )
    expect((await act({ action: 'finish_cluster' })).json).to.deep.equal({ ok: true })
    expect(await state()).to.equal('cluster_finished')
    expect((await act({ action: 'finish_cluster' })).json.reason).to.equal('Cluster is already finished')
    expect((await act({ action: 'dance' })).json.reason).to.equal("Invalid Action'")
    const ensured = await node.get('/_cluster_setup?ensure_dbs_exist=["_users","_global_changes"]')
    expect(ensured.json.state).to.equal('cluster_enabled')
  })

  it('let a single node be set up again and again', async () => {
    const single = new MemoryNode()
    expect((await single.get('/_cluster_setup')).json.state).to.equal('single_node_disabled')
    for (let i = 0; i < 2; i++) {
      expect((await single.post('/_cluster_setup', { action: 'enable_single_node' })).status).to.equal(201)
    }
    expect((await single.get('/_cluster_setup')).json.state).to.equal('single_node_enabled')
    await single.stop()
  })

  it('create the system databases when a node starts with single_node, as soon as it accepts writes', async () => {
    const single = new MemoryNode({ http: { singleNode: true }, refusesWrites: true })
    await single.clock.advance(5000)
    expect((await single.get('/_cluster_setup')).json.state).to.equal('single_node_disabled')
    single.control.writesRefused = null
    await single.clock.advance(1000)
    expect((await single.get('/_cluster_setup')).json.state).to.equal('single_node_enabled')
    expect((await single.get('/_all_dbs')).json).to.deep.equal(['_replicator', '_users'])
    expect(single.audited.map(({ event, user, details }) => [event, user, details?.['database']])).to.deep.equal([
      ['database_created', null, '_users'], ['database_created', null, '_replicator'],
    ])
    await single.stop()
  })

  it('create none when a node starts without single_node, or where there are other nodes', async () => {
    const nodes = ['node1@127.0.0.1', 'node2@127.0.0.1']
    const clustered = new MemoryNode({ nodes, http: { singleNode: true } })
    const plain = new MemoryNode()
    for (const each of [clustered, plain]) {
      await each.clock.advance(5000)
      expect((await each.get('/_all_dbs')).json).to.deep.equal([])
      await each.stop()
    }
    const warnings = clustered.log.lines.filter(({ level }) => level === 'warn')
    expect(warnings.map(({ fields }) => fields['option'])).to.deep.equal(['couchdb/single_node'])
  })
})

describe('node configuration', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode({ nodes: ['node1@127.0.0.1', 'node2@127.0.0.1'] })
    node.configuration.put('chttpd_auth', 'iterations', '2')
  })
  afterEach(() => node.stop())
  const base = '/_node/_local/_config'

  it('is read, changed and removed, answering the previous value', async () => {
    expect((await node.get(`${base}/conf/colour`)).json).to.deep.equal({
      error: 'not_found', reason: 'unknown_config_value',
    })
    expect((await node.put(`${base}/conf/colour`, '"  red "')).json).to.equal('')
    expect((await node.put(`${base}/conf/colour`, '{"a":[1,"x"]}')).json).to.equal('red')
    expect((await node.get(`${base}/conf/colour`)).json).to.equal('{"a":[1,"x"]}')
    expect((await node.put(`${base}/conf/a%20b`, '5')).status).to.equal(200)
    expect((await node.get(`${base}/conf`)).json).to.deep.equal({ 'colour': '{"a":[1,"x"]}', 'a b': '5' })
    expect((await node.delete(`${base}/conf/colour`)).json).to.equal('{"a":[1,"x"]}')
    expect((await node.delete(`${base}/conf/colour`)).status).to.equal(404)
    expect((await node.get(`${base}/constructor`)).json).to.deep.equal({})
    expect((await node.get(base)).json).to.include.keys('admins', 'conf')
    expect((await node.get(`${base}/a/b/c`)).json.reason).to.equal('missing')
  })

  it('forgets unpersisted values on reload', async () => {
    await node.put(`${base}/conf/mem`, '"on"', { 'x-couch-persist': 'false' })
    await node.put(`${base}/conf/disk`, '"on"')
    expect((await node.post(`${base}/_reload`)).json).to.deep.equal({ ok: true })
    expect((await node.get(`${base}/conf`)).json).to.deep.equal({ disk: 'on' })
  })

  it('refuses bad bodies, methods and sections that name programs', async () => {
    expect((await node.put(`${base}/conf/x`)).json.reason).to.equal('Missing request body')
    expect((await node.put(`${base}/conf/x`, 'not json')).json.reason).to.equal('invalid UTF-8 JSON')
    expect((await node.put(`${base}/conf`, '"x"')).headers['allow']).to.equal('GET')
    expect((await node.post(`${base}/conf/x`, '"x"')).headers['allow']).to.equal('GET,PUT,DELETE')
    expect((await node.get(`${base}/_reload`)).headers['allow']).to.equal('POST')
    for (const section of ['os_daemons', 'query_servers']) {
      expect((await node.put(`${base}/${section}/x`, '"x"')).json.reason).to.equal(
        'Config section blacklisted for modification over HTTP API.',
      )
      expect((await node.get(`${base}/${section}`)).status).to.equal(200)
    }
  })

  it('changes only what the whitelist lists, when there is one', async () => {
    node.configuration.put('chttpd', 'config_whitelist', '[{chttpd, config_whitelist}, {"log", "level"}, {conf, "*"}]')
    expect((await node.put(`${base}/log/level`, '"info"')).status).to.equal(200)
    expect((await node.put(`${base}/conf/any`, '"x"')).status).to.equal(200)
    expect((await node.put(`${base}/log/file`, '"x"')).json).to.deep.equal({
      error: 'modification_not_allowed', reason: 'This config variable is read-only',
    })
    node.configuration.put('chttpd', 'config_whitelist', 'nonsense')
    expect((await node.put(`${base}/log/level`, '"info"')).status).to.equal(400)
    expect((await node.put(`${base}/chttpd/config_whitelist`, '""')).status).to.equal(200)
  })

  it('stores administrators as hashes and never as plain text', async () => {
    const stored = (await node.put(`${base}/admins/second`, '"pass word"')).json
    expect(stored).to.match(/^-pbkdf2:sha256-[0-9a-f]{64},[0-9a-f]{32},2$/)
    expect(node.configuration.get('admins', 'second')).to.equal(stored)
    expect((await node.put(`${base}/admins/third?raw=true`, JSON.stringify(stored))).json).to.equal(stored)
    expect((await node.put(`${base}/admins/fourth?raw=true`, '"plain"')).status).to.equal(400)
    const costly = JSON.stringify(stored.replace(/\d+$/, '10000001'))
    expect((await node.put(`${base}/admins/fifth?raw=true`, costly)).status).to.equal(400)
  })

  it('is asked of other nodes over the control link', async () => {
    node.control.ask = async (name, question, argument) => {
      node.control.asked.push({ name, question, argument })
      return 'old'
    }
    const answer = await node.put('/_node/node2@127.0.0.1/_config/a/b', '"new"', { 'x-couch-request-id': 'r1' })
    expect(answer.json).to.equal('old')
    expect(node.control.asked).to.deep.equal([
      {
        name: 'node2@127.0.0.1', question: 'config',
        argument: {
          action: 'set', section: 'a', key: 'b', value: 'new', persist: true,
          by: { user: 'admin', address: '127.0.0.1', requestId: 'r1' },
        },
      },
    ])
  })

  it('is checked by the node whose value it is, and its refusal is returned unchanged', async () => {
    const other = new MemoryNode()
    node.control.ask = (_name, question, argument) => answerNodeQuestion(
      {
        ...other, nodeInformation: memoryNodeInformation, options: other.configuration.options.values,
        random: other.runtime.random, audit: { record: () => {} },
      },
      question as 'config', argument,
    )
    const path = '/_node/node2@127.0.0.1/_config'
    other.configuration.put('chttpd', 'config_blacklist', '[{conf, shut}, {closed, *}, {chttpd, enable_cors}]')
    for (const name of ['conf/shut', 'closed/x', 'os_daemons/x', 'httpd/enable_cors']) {
      const refused = await node.put(`${path}/${name}`, '"x"')
      expect([refused.status, refused.json.error]).to.deep.equal([403, 'forbidden'])
      expect((await node.delete(`${path}/${name}`)).status).to.equal(403)
    }
    expect((await node.put(`${path}/admins/x?raw=true`, '"plain"')).status).to.equal(400)
    expect((await node.put(`${path}/conf/open`, '"x"')).status).to.equal(200)
    expect((await node.put(`${path}/chttpd_auth/secret`, '"a secret"')).json).to.equal('')
    expect([(await node.get(`${path}/conf/open`)).json, (await node.get(`${path}/chttpd_auth/secret`)).json])
      .to.deep.equal(['x', '****'])
    await other.stop()
  })

  it('is refused for the options of the blacklist by their present and by their former names', async () => {
    node.configuration.put('chttpd', 'config_blacklist', '[{couch_httpd_auth, timeout}, {httpd, *}]')
    const names = [
      'chttpd_auth/timeout', 'couch_httpd_auth/timeout', 'service_httpd_auth/timeout', 'chttpd/enable_cors',
    ]
    for (const name of names) expect((await node.put(`${base}/${name}`, '"1"')).status, name).to.equal(403)
    expect((await node.put(`${base}/chttpd_auth/iterations`, '"10"')).status).to.equal(200)
  })

  it('logs each change with its author on the node whose value it is, and without secrets', async () => {
    const headers = { 'x-couch-request-id': 'r2' }
    await node.put(`${base}/conf/colour`, '"red"', headers)
    await node.put(`${base}/chttpd_auth/secret`, '"hide me"', headers)
    await node.put(`${base}/admins/bert`, '"hide me"', headers)
    await node.delete(`${base}/conf/colour`, headers)
    await node.post(`${base}/_reload`, undefined, headers)
    const by = { user: 'admin', address: '127.0.0.1', requestId: 'r2' }
    const lines = node.log.lines.filter(({ message }) => /setting|configuration/.test(message))
    expect(lines.map(({ message, fields }) => [message, fields])).to.deep.equal([
      ['a setting was changed', { ...by, section: 'conf', key: 'colour', value: 'red', persist: true }],
      ['a setting was changed', { ...by, section: 'chttpd_auth', key: 'secret', value: '****', persist: true }],
      ['a setting was changed', { ...by, section: 'admins', key: 'bert', value: '****', persist: true }],
      ['a setting was removed', { ...by, section: 'conf', key: 'colour', persist: true }],
      ['the configuration was read again', by],
    ])
    expect(JSON.stringify(node.log.lines)).not.to.include('hide me')
  })

  it('logs the options that a reload leaves to a restart', async () => {
    node.configuration.needRestart = ['node/name']
    await node.post(`${base}/_reload`, undefined, { 'x-couch-request-id': 'r3' })
    expect(node.log.lines.filter(({ level }) => level === 'warn').map(({ message, fields }) => [message, fields]))
      .to.deep.equal([['options that files have changed apply after a restart', {
        user: 'admin', address: '127.0.0.1', requestId: 'r3', options: ['node/name'],
      }]])
  })
})
