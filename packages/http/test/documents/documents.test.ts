import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

describe('documents', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=2')
  })
  afterEach(() => node.stop())

  const write = async (target: string, body: unknown): Promise<string> => (await node.put(target, body)).json.rev

  it('are created, read, edited and deleted with CouchDB\'s revisions and headers', async () => {
    const created = await node.put('/db/doc', { a: 1 })
    expect(created.json).to.deep.equal({ ok: true, id: 'doc', rev: '1-23202479633c2b380f79507a776743d5' })
    expect(created.headers).to.include({
      etag: '"1-23202479633c2b380f79507a776743d5"', location: 'http://node.example:5984/db/doc',
    })
    expect((await node.get('/db/doc')).text).to.equal(
      '{"_id":"doc","_rev":"1-23202479633c2b380f79507a776743d5","a":1}\n',
    )
    const edited = await node.put(`/db/doc?rev=${created.json.rev}`, { a: 2 })
    expect(edited.status).to.equal(201)
    const deleted = await node.delete('/db/doc', { 'if-match': edited.headers['etag']! })
    expect([deleted.status, deleted.headers['location']]).to.deep.equal([200, undefined])
    expect((await node.get('/db/doc')).json).to.deep.equal({ error: 'not_found', reason: 'deleted' })
    expect((await node.get('/db/never')).json).to.deep.equal({ error: 'not_found', reason: 'missing' })
    expect((await node.get(`/db/doc?rev=${deleted.json.rev}`)).json).to.deep.include({ _deleted: true })
    expect((await node.get('/db/doc?deleted=true')).json).to.deep.include({ _rev: deleted.json.rev, _deleted: true })
  })

  it('are 304 for a client that has the revision, and never with meta members', async () => {
    const rev = await write('/db/doc', {})
    const condition = { 'if-none-match': `W/"other", "${rev}"` }
    const same = await node.get('/db/doc', condition)
    expect([same.status, same.text, same.headers['etag']]).to.deep.equal([304, '', `"${rev}"`])
    expect((await node.get('/db/doc?conflicts=true', condition)).status).to.equal(304)
    const meta = await node.get('/db/doc?revs_info=true', condition)
    expect([meta.status, meta.headers['etag']]).to.deep.equal([200, undefined])
  })

  it('have an ETag that is valid in a header, whatever their revision', async () => {
    for (const rev of ['1-quo"te', '1-new\nline', '1-snow\u2603', '1-per%cent']) {
      const id = encodeURIComponent(rev)
      const written = await node.put(`/db/${id}?new_edits=false`, { _rev: rev })
      expect([written.status, written.json.rev]).to.deep.equal([201, rev])
      const read = await node.get(`/db/${id}`)
      const { etag } = read.headers
      expect([read.status, read.json._rev, etag]).to.deep.equal([200, rev, written.headers['etag']])
      expect(etag).to.match(/^"[!#-~]+"$/)
      expect((await node.get(`/db/${id}`, { 'if-none-match': etag! })).status).to.equal(304)
      expect((await node.delete(`/db/${id}`, { 'if-match': etag! })).status).to.equal(200)
    }
  })

  it('come back with the digits that were sent', async () => {
    const body = '{"id":123456789012345678901234567891,"half":0.5,"one":1.0,"list":[18446744073709551615]}'
    await node.put('/db/n', body)
    expect((await node.get('/db/n')).text).to.contain('"id":123456789012345678901234567891')
    expect((await node.get('/db/_all_docs?include_docs=true')).text).to.contain('[18446744073709551615]')
  })

  it('take the revision from body, query and If-Match, which must agree', async () => {
    const rev = await write('/db/doc', {})
    const other = '7-00000000000000000000000000000000'
    expect((await node.put(`/db/doc?rev=${other}`, { _rev: rev })).json.reason).to.equal(
      'Document rev from request body and query string have different values',
    )
    expect((await node.put('/db/doc', { _rev: rev }, { 'if-match': `"${other}"` })).json.reason).to.equal(
      'Document rev and etag have different values',
    )
    expect((await node.put('/db/doc', {}, { 'if-match': 'nonsense' })).json.reason).to.equal('Invalid rev format')
    expect((await node.put(`/db/doc?rev=${rev}`, { _rev: rev }, { 'if-match': `"${rev}"` })).status).to.equal(201)
  })

  it('conflict when the revision is stale, missing or made up', async () => {
    const rev = await write('/db/doc', {})
    await node.put(`/db/doc?rev=${rev}`, { n: 2 })
    for (const target of ['/db/doc', `/db/doc?rev=${rev}`, '/db/doc?rev=9-0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f']) {
      const refused = await node.put(target, { n: 3 })
      expect([refused.status, refused.json]).to.deep.equal([
        409, { error: 'conflict', reason: 'Document update conflict.' },
      ])
    }
    expect((await node.delete('/db/doc')).status).to.equal(409)
  })

  it('are looked up before the revision of a DELETE is parsed', async () => {
    const rev = await write('/db/gone', {})
    await node.delete(`/db/gone?rev=${rev}`)
    await write('/db/live', {})
    await write('/db/_local/live', {})
    for (const [id, status, reason] of [
      ['none', 404, 'missing'], ['gone', 404, 'deleted'], ['live', 400, 'Invalid rev format'],
      ['_local/none', 404, 'missing'], ['_local/live', 400, 'Invalid rev format'],
    ] as const) {
      for (const refused of [
        await node.delete(`/db/${id}?rev=bad`), await node.delete(`/db/${id}`, { 'if-match': 'bad' }),
      ]) {
        expect([id, refused.status, refused.json.reason]).to.deep.equal([id, status, reason])
      }
    }
    expect((await node.get('/db/_local/live')).status).to.equal(200)
  })

  it('answer 200 to a PUT that deletes', async () => {
    const rev = await write('/db/doc', {})
    expect((await node.put('/db/doc', { _rev: rev, _deleted: true })).status).to.equal(200)
  })

  it('must be one JSON object', async () => {
    for (const body of ['[1]', '"text"', 'null', '42']) {
      expect((await node.put('/db/doc', body)).json.reason).to.equal('Document must be a JSON object')
    }
    for (const body of ['', '{"a":', "{'a':1}", '{} {}', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]) {
      expect((await node.put('/db/doc', body)).json).to.deep.equal({
        error: 'bad_request', reason: 'invalid UTF-8 JSON',
      })
    }
    expect((await node.put('/db/doc')).json).to.deep.equal({ error: 'bad_request', reason: 'Missing request body' })
  })

  it('have ids of every shape, checked on writing', async () => {
    for (const [target, id] of [
      ['/db/a%2Fb', 'a/b'], ['/db/one+two', 'one two'], ['/db/one%2Btwo', 'one+two'], ['/db/%F0%9F%98%80', '😀'],
      ['/db/_design%2Fx', '_design/x'],
    ] as const) {
      expect((await node.put(target, {})).json.id).to.equal(id)
    }
    expect((await node.put('/db/_secret', {})).json.error).to.equal('illegal_docid')
    expect((await node.get('/db/_secret')).json.reason).to.equal('missing')
    expect((await node.post('/db', { _id: '_design/' })).json.reason).to.equal('Illegal document id `_design/`')
    expect((await node.put('/db/fine', { _id: '' })).json.error).to.equal('illegal_docid')
    expect((await node.put('/db/fine', { _id: 'other' })).json.id).to.equal('fine')
    node.configuration.put('couchdb', 'max_document_id_length', '3')
    expect((await node.put('/db/four', {})).json.reason).to.equal('Document id is too long')
    expect((await node.post('/db', {})).status, 'the limit is for ids of clients').to.equal(201)
  })

  it('may name another id in their body, but none that is illegal', async () => {
    for (const target of ['/db/doc', '/db/_local/doc']) {
      for (const _id of ['', null, '_x', 5, '_local/']) {
        expect((await node.put(target, { _id })).json.error).to.equal('illegal_docid')
      }
      expect((await node.put(target, { _id: 'other' })).json.id).to.equal(target.slice('/db/'.length))
    }
    node.configuration.put('couchdb', 'max_document_id_length', '10')
    for (const target of ['/db/short', '/db/_local/doc']) {
      expect((await node.put(target, { _id: 'longer than ten' })).json.reason).to.equal('Document id is too long')
    }
    await node.put('/parts?partitioned=true')
    expect((await node.put('/parts/a:b', { _id: 'c' })).json.reason).to.equal('Doc id must be of form partition:id')
  })

  it('of the name _design%2Fx are redirected to the plain slash', async () => {
    const moved = await node.get('/db/_design%2Fx?a=b')
    expect([moved.status, moved.headers['location'], moved.text]).to.deep.equal([
      301, 'http://node.example:5984/db/_design/x?a=b', '',
    ])
  })

  it('over the size limit are refused with their id, size and the limit', async () => {
    node.configuration.put('couchdb', 'max_document_size', '20')
    const refused = await node.put('/db/doc', { _id: 'named', text: 'x'.repeat(30) })
    expect([refused.status, refused.json]).to.deep.equal([
      413, { error: 'document_too_large', reason: 'doc: 41 bytes, couchdb/max_document_size is 20' },
    ])
    const bulk = await node.post('/db/_bulk_docs', {
      docs: [{ _id: 'small' }, { _id: 'large', text: 'x'.repeat(30), _attachments: { a: { data: 'YQ==' } } }],
    })
    expect([bulk.status, bulk.json.reason]).to.deep.equal([413, 'large: 41 bytes, couchdb/max_document_size is 20'])
    expect((await node.get('/db/small')).status).to.equal(404)
    expect((await node.put('/db/_local/doc', { text: 'x'.repeat(30) })).json.reason).to.equal(
      '_local/doc: 41 bytes, couchdb/max_document_size is 20',
    )
  })

  it('that are too large for a message between nodes are refused, whatever the settings say', async () => {
    node.configuration.put('couchdb', 'max_document_size', 'infinity')
    const body = await node.put('/db/doc', { text: 'x'.repeat(48 * 1024 * 1024) })
    expect([body.status, body.json.reason]).to.deep.equal([
      413, 'doc: 50331659 bytes, couchdb/max_document_size is 50331648',
    ])
    const id = await node.post('/db', { _id: 'x'.repeat(65_537) })
    expect([id.status, id.json.reason]).to.deep.equal([400, 'Document id is too long'])
    expect((await node.post('/db', { _id: 'x'.repeat(65_536) })).status).to.equal(201)
    const heads = await node.put('/db/doc', {
      _attachments: { a: { content_type: 'x'.repeat(1024 * 1024), data: '' } },
    })
    expect([heads.status, heads.json.reason]).to.deep.equal([
      413, 'doc: the names and types of its attachments have 1048577 bytes, the limit is 1048576',
    ])
  })

  it('without attachments answer 404 for an attachment', async () => {
    expect((await node.put('/db/doc', { _attachments: {} })).status).to.equal(201)
    expect((await node.get('/db/doc/a.txt')).json.reason).to.equal('Document is missing attachment')
    expect((await node.get('/db/none/a.txt')).json.reason).to.equal('missing')
  })

  it('of _replicator are missing before the database exists, and other users have no access', async () => {
    await node.put('/_users/org.couchdb.user:eva', { name: 'eva', type: 'user', roles: [], password: 'x' })
    const job = { source: 'a', target: 'b' }
    const eva = { authorization: basic('eva', 'x') }
    const status = async (answer: Promise<Answer>): Promise<unknown[]> => {
      const { status, json } = await answer
      return [status, json.reason]
    }
    for (const path of ['/_replicator/x', '/_replicator', '/_replicator/_security']) {
      expect(await status(node.get(path, { authorization: '' })), path)
        .to.deep.equal([401, 'You are not authorized to access this db.'])
      expect(await status(node.get(path, eva)), path).to.deep.equal([403, 'You are not allowed to access this db.'])
    }
    expect((await node.put('/_replicator/x', job, { authorization: '' })).status).to.equal(401)
    expect((await node.put('/_replicator/x', job, eva)).status).to.equal(403)
    expect((await node.put('/_replicator/x', job)).status).to.equal(501)
    expect(await status(node.get('/_replicator/x'))).to.deep.equal([404, 'missing'])
    expect(await status(node.get('/_replicator'))).to.deep.equal([404, 'Database does not exist.'])
    expect((await node.get('/_all_dbs')).json).to.not.include('_replicator')
  })

  it('of system databases are refused rather than stored unprocessed', async () => {
    await node.put('/_replicator')
    expect((await node.put('/_replicator/x', { source: 'a', target: 'b' })).status).to.equal(501)
    expect((await node.post('/_replicator/_bulk_docs', { docs: [{ _id: 'x' }] })).status).to.equal(501)
    expect((await node.request('COPY', '/_replicator/x', undefined, { destination: 'y' })).status).to.equal(404)
    await node.put('/x%2F_replicator')
    const other = await node.put('/x%2F_replicator/x', { source: 'a', target: 'b' })
    expect([other.status, other.json.reason])
      .to.deep.equal([501, 'Writing documents to x/_replicator is not available in this version.'])
    expect((await node.put('/x%2F_replicator/_design/x', {})).status).to.equal(201)
  })

  it('posted without an id get one, and an ETag only when they had one', async () => {
    const made = await node.post('/db', { n: 1 })
    expect(made.json.id).to.match(/^[0-9a-f]{32}$/)
    expect(made.headers).not.to.have.property('etag')
    const named = await node.post('/db', { _id: 'named' })
    expect(named.headers).to.include({ etag: `"${named.json.rev}"`, location: 'http://node.example:5984/db/named' })
    expect((await node.post('/db', '{}', { 'content-type': 'text/plain' })).status).to.equal(415)
    expect((await node.post('/db', '{}')).status).to.equal(415)
    expect((await node.post('/db', '{}', { 'content-type': 'Application/JSON; charset=utf-8' })).status).to.equal(201)
  })

  it('show history, conflicts and local sequence on request', async () => {
    const docs = ['3-c/2-b/1-a', '2-x/1-a'].map(path => {
      const [start] = path.split('-') as [string]
      return {
        _id: 'doc', _revisions: { start: Number(start), ids: path.split('/').map(revision => revision.slice(2)) }, path,
      }
    })
    const gone = { _id: 'doc', _deleted: true, _revisions: { start: 4, ids: ['d', 'y', 'x', 'a'] } }
    const stem = { ...gone, _revisions: { start: 2, ids: ['y', 'a'] } }
    expect((await node.post('/db/_bulk_docs', { new_edits: false, docs: [...docs, stem] })).json).to.deep.equal([])
    const shown = (await node.get('/db/doc?meta=true&revs=true&local_seq=true')).json
    expect(shown._revisions).to.deep.equal({ start: 3, ids: ['c', 'b', 'a'] })
    expect(shown._revs_info).to.deep.equal([
      { rev: '3-c', status: 'available' }, { rev: '2-b', status: 'missing' }, { rev: '1-a', status: 'missing' },
    ])
    expect(shown._conflicts).to.deep.equal(['2-x'])
    expect(shown._deleted_conflicts).to.deep.equal(['2-y'])
    expect(shown._local_seq).to.be.a('string')
    expect(Object.keys(shown)).to.deep.equal([
      '_id', '_rev', 'path', '_revisions', '_revs_info', '_local_seq', '_conflicts', '_deleted_conflicts',
    ])
  })

  it('open at a named revision, or at the leaves that descend from it', async () => {
    const first = await write('/db/doc', { n: 1 })
    const second = (await node.put(`/db/doc?rev=${first}`, { n: 2 })).json.rev
    expect((await node.get(`/db/doc?rev=${first}`)).json).to.deep.equal({ _id: 'doc', _rev: first, n: 1 })
    expect((await node.get(`/db/doc?rev=${first}&latest=true`)).json._rev).to.equal(second)
    const alone = await node.get(`/db/doc?rev=${first}&meta=true&local_seq=true`)
    expect([alone.json, alone.headers['etag']], 'nothing of the document as a whole').to.deep.equal([
      { _id: 'doc', _rev: first, n: 1 }, `"${first}"`,
    ])
    expect((await node.get('/db/doc?rev=1-none')).json.reason).to.equal('missing')
    expect((await node.get('/db/doc?rev=none')).json.reason).to.equal('Invalid rev format')
  })

  it('list open revisions as JSON or as multipart/mixed, by what Accept admits', async () => {
    const rev = await write('/db/doc', { n: 1 })
    const target = `/db/doc?open_revs=${encodeURIComponent(JSON.stringify([rev, '9-none']))}`
    expect((await node.get(target)).json).to.deep.equal([
      { ok: { _id: 'doc', _rev: rev, n: 1 } }, { missing: '9-none' },
    ])
    for (const accept of ['', '*/*', 'multipart/mixed, application/json;q=0.5']) {
      const answer = await node.get(target, { accept })
      const boundary = /^multipart\/mixed; boundary="([0-9a-f]+)"$/.exec(answer.headers['content-type']!)![1]
      expect(answer.text).to.equal([
        `--${boundary}`, 'Content-Type: application/json', '', JSON.stringify({ _id: 'doc', _rev: rev, n: 1 }),
        `--${boundary}`, 'Content-Type: application/json; error="true"', '', '{"missing":"9-none"}', `--${boundary}--`,
      ].join('\r\n'))
    }
    expect((await node.get('/db/none?open_revs=all')).status).to.equal(404)
    expect((await node.get('/db/none?open_revs=[]')).json).to.deep.equal([])
    expect((await node.get('/db/doc?open_revs=5')).status).to.equal(400)
  })

  it('are copied, also over another revision and to local ids', async () => {
    const rev = await write('/db/src', { a: 1 })
    const copy = (destination: string) => node.request('COPY', '/db/src', undefined, { destination })
    expect((await copy('dst%2F1')).json).to.deep.equal({ ok: true, id: 'dst/1', rev })
    expect((await copy('dst%2F1')).status).to.equal(409)
    expect((await copy(`dst%2F1?rev=${rev}`)).status).to.equal(201)
    expect((await copy('_local/kept')).json.rev).to.equal('0-1')
    expect((await node.request('COPY', '/db/_local/kept', undefined, { destination: 'back' })).status).to.equal(201)
    expect((await node.get('/db/back')).json.a).to.equal(1)
    expect((await copy('http://other/dst')).json.reason).to.equal('Destination URL must be relative.')
    expect((await node.request('COPY', '/db/src')).json.reason).to.equal('Destination header is mandatory for COPY.')
    expect((await node.request('COPY', '/db/none', undefined, { destination: 'x' })).status).to.equal(404)
  })

  it('are copied with the default quorum, whatever w asks for', async () => {
    await write('/db/src', {})
    for (const destination of ['dst', '_local/dst']) {
      expect((await node.request('COPY', '/db/src?w=5', undefined, { destination })).status).to.equal(201)
    }
  })

  it('may have revisions with an empty hash, as in CouchDB when a replicator writes them', async () => {
    expect((await node.put('/db/bare?new_edits=false', { _rev: '1-', n: 1 })).json.rev).to.equal('1-')
    const first = await node.get('/db/bare?rev=1-')
    expect([first.status, first.json._rev, first.json.n, first.headers['etag']]).to.deep.equal([200, '1-', 1, '"1-"'])
    expect((await node.get('/db/bare', { 'if-none-match': '"1-"' })).status).to.equal(304)
    const child = { _id: 'bare', _revisions: { start: 2, ids: ['', ''] } }
    expect((await node.post('/db/_bulk_docs', { new_edits: false, docs: [child] })).json).to.deep.equal([])
    expect((await node.get('/db/bare?revs=true')).json._revisions).to.deep.equal({ start: 2, ids: ['', ''] })
    expect((await node.get('/db/bare?open_revs=["1-","2-","3-"]')).json.map((row: any) =>
      row.ok?._rev ?? row)).to.deep.equal(['1-', '2-', { missing: '3-' }])
    expect((await node.post('/db/_revs_diff', { bare: ['1-', '2-', '3-'], other: ['1-'] })).json)
      .to.deep.equal({ bare: { missing: ['3-'], possible_ancestors: ['2-'] }, other: { missing: ['1-'] } })
    const edited = await node.put('/db/bare?rev=2-', { n: 2 })
    expect([edited.status, edited.json.rev.slice(0, 2)]).to.deep.equal([201, '3-'])
    await node.put('/db/gone?new_edits=false', { _rev: '1-' })
    expect((await node.request('DELETE', '/db/gone', undefined, { 'if-match': '"1-"' })).status).to.equal(200)
  })

  it('replicated with new_edits=false keep their revision and never conflict', async () => {
    expect((await node.put('/db/doc?new_edits=false', { _rev: '5-abc' })).json.rev).to.equal('5-abc')
    expect((await node.put('/db/doc?new_edits=false', { _rev: '5-abc' })).status).to.equal(201)
    expect((await node.put('/db/doc?new_edits=false&rev=6-def', {})).json.rev).to.equal('6-def')
    for (const id of ['doc', '_local/doc']) {
      const refused = await node.put(`/db/${id}?new_edits=false`, {})
      expect([refused.status, refused.json.reason]).to.deep.equal([
        400, 'When `new_edits: false`, the document needs `_rev` or `_revisions` specified',
      ])
    }
    expect((await node.put('/db/_local/doc?new_edits=false', { _rev: '0-3' })).status).to.equal(201)
  })

  it('with batch=ok are acknowledged before they are written', async () => {
    const rev = await write('/db/doc', {})
    for (const answer of [
      await node.put('/db/log?batch=ok', {}), await node.post('/db?batch=ok', {}),
      await node.request('COPY', '/db/doc?batch=ok', undefined, { destination: 'x' }),
      await node.delete(`/db/doc?batch=ok&rev=${rev}`),
    ]) {
      expect([answer.status, answer.json.ok, answer.json.rev]).to.deep.equal([202, true, undefined])
    }
    expect((await node.put('/db/_bad?batch=ok', {})).status).to.equal(400)
  })

  it('with batch=ok are answered without a revision, local and replicated ones too', async () => {
    await write('/db/doc', {})
    await write('/db/_local/old', {})
    const answers = [
      ['replicated', await node.put('/db/replicated?new_edits=false&batch=ok', { _rev: '5-abc' })],
      ['_local/put', await node.put('/db/_local/put?batch=ok', {})],
      ['_local/posted', await node.post('/db?batch=ok', { _id: '_local/posted' })],
      ['_local/copied', await node.request('COPY', '/db/doc?batch=ok', undefined, { destination: '_local/copied' })],
      ['_local/old', await node.delete('/db/_local/old?batch=ok')],
    ] as const
    for (const [id, { status, json, headers }] of answers) {
      expect([status, json]).to.deep.equal([202, { ok: true, id }])
      expect(headers).not.to.have.any.keys('etag', 'location')
      expect((await node.get(`/db/${id}`)).status).to.equal(id === '_local/old' ? 404 : 200)
    }
    for (const refused of [
      await node.put('/db/doc?new_edits=false&batch=ok', {}),
      await node.put('/db/_local/put?batch=ok', { _rev: 'bad' }),
    ]) {
      expect(refused.status).to.equal(400)
    }
    expect((await node.delete('/db/_local/none?batch=ok')).status).to.equal(404)
  })

  it('in partitioned databases need a partition', async () => {
    await node.put('/parts?partitioned=true')
    expect((await node.put('/parts/none', {})).json.reason).to.equal('Doc id must be of form partition:id')
    for (const method of ['GET', 'DELETE', 'COPY']) {
      const refused = await node.request(method, '/parts/none', undefined, { destination: 'a:b' })
      expect([refused.status, refused.json]).to.deep.equal([
        400, { error: 'illegal_docid', reason: 'Doc id must be of form partition:id' },
      ])
    }
    expect((await node.post('/parts', {})).json.error).to.equal('illegal_docid')
    expect((await node.put('/parts/a:b:c', {})).status).to.equal(201)
    expect((await node.put('/parts/_design/x', {})).status).to.equal(201)
  })
})

describe('design documents', () => {
  it('are checked for the types of their members', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    const reasons: readonly [object, string][] = [
      [{ views: [] }, '`views` field must have object type'],
      [{ views: { v: {} } }, 'View `v` must contain map function'],
      [{ views: { v: {}, w: { reduce: 7 } } }, '`views.w.reduce` field must have string type'],
      [{ views: { v: { map: 5 } } }, '`views.v.map` field must have string type'],
      [{ views: { v: { map: 'f', reduce: '_median' } } }, '`_median` is not a supported reduce function.'],
      [{ views: { v: { map: 'f', reduce: '_top_101' } } }, 'rank value must be between 1 and 100'],
      [{ filters: { f: 1 } }, '`filters.f` field must have string or object type'],
      [{ shows: { s: null } }, '`shows.s` field must have string or object type'],
      [{ options: { local_seq: 'yes' } }, '`options.local_seq` field must have boolean type'],
      [{ options: { include_design: 1 } }, '`options.include_design` field must have boolean type'],
      [{ validate_doc_update: {} }, '`validate_doc_update` field must have string type'],
      [{ language: 'query', validate_doc_update: '() => {}' }, '`validate_doc_update` field must have object type'],
      [{ language: 5 }, '`language` field must have string type'],
      [{ options: { partitioned: true } }, 'partitioned option cannot be true in a non-partitioned database.'],
    ]
    for (const [design, reason] of reasons) {
      expect((await node.put('/db/_design/bad', design)).json).to.deep.equal({ error: 'invalid_design_doc', reason })
    }
    const good = {
      views: {
        lib: { a: 'x' }, v: { map: 'doc => {}', reduce: '_stats' },
        first: { map: 'doc => {}', reduce: '_first' }, last: { map: 'doc => {}', reduce: '_last' },
        top: { map: 'doc => {}', reduce: '_top_3' },
        fromFile: { map: 'doc => {}', reduce: '_count\n' },
      },
      options: { partitioned: false }, any: 1,
      shows: { lib: { a: 'exports.a = 1' } }, lists: { lib: {} }, updates: { lib: {} }, filters: { lib: {} },
    }
    expect((await node.put('/db/_design/good', good)).status).to.equal(201)
    const other = { language: 'python', views: { v: { map: 'def', reduce: '_median' } } }
    expect((await node.put('/db/_design/other', other)).status).to.equal(201)
    expect((await node.get('/db/_design/other/_view/v')).json.error).to.equal('unknown_query_language')
    expect((await node.get('/db/_design/good/_view/v')).status).to.equal(501)
    await node.stop()
  })
})
