import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { type Answer, MemoryNode } from '../memory-node.ts'

const binary = { 'content-type': 'application/octet-stream' }

describe('attachments', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=2')
  })
  afterEach(() => node.stop())

  it('are stored and read under paths of their own', async () => {
    const put = await node.put('/db/doc/dir/photo.png', 'picture', { 'content-type': 'image/png' })
    expect([put.status, put.headers['location']]).to.deep.equal([
      201, 'http://node.example:5984/db/doc/dir%2Fphoto.png',
    ])
    const got = await node.get('/db/doc/dir/photo.png')
    expect([got.status, got.text, got.headers['content-type'], got.headers['content-length']]).to.deep.equal([
      200, 'picture', 'image/png', '7',
    ])
    expect(got.headers['etag']).to.equal(`"${md5('picture')}"`)
    expect(got.headers['content-security-policy']).to.equal('sandbox')
    expect((await node.request('HEAD', '/db/doc/dir%2Fphoto.png')).headers['content-length']).to.equal('7')
    const { _attachments: attachments } = (await node.get('/db/doc')).json
    expect(attachments).to.deep.equal({
      'dir/photo.png': { content_type: 'image/png', revpos: 1, digest: `md5-${md5('picture')}`, length: 7, stub: true },
    })
  })

  it('are part of the hash of a revision: equal attachments result in equal revisions', async () => {
    const revision = async (id: string, type: string): Promise<string> =>
      (await node.put(`/db/${id}`, { _attachments: { a: { content_type: type, data: 'YTE=' } } })).json.rev
    expect(await revision('x', 'image/png')).to.equal(await revision('y', 'image/png'))
    expect(await revision('v', 'image/png')).to.not.equal(await revision('w', 'image/gif'))
  })

  it('too large are refused before they are stored', async () => {
    node.configuration.put('couchdb', 'max_attachment_size', '10')
    const refused = await node.put('/db/doc/big', 'x'.repeat(11), binary)
    expect([refused.status, refused.json]).to.deep.equal([
      413, { error: 'attachment_too_large', reason: 'big of doc: 11 bytes, couchdb/max_attachment_size is 10' },
    ])
    expect((await node.put('/db/doc', { _attachments: { big: { data: Buffer.alloc(11)
      .toString('base64') } } })).json.error).to.equal('attachment_too_large')
    node.configuration.put('chttpd', 'max_http_request_size', '5')
    expect((await node.put('/db/doc/big', 'x'.repeat(6), binary)).json).to.deep.equal({
      error: 'too_large', reason: 'the request entity is too large: 6 bytes, chttpd/max_http_request_size is 5',
    })
    expect((await node.get('/db/doc')).status).to.equal(404)
  })

  it('that are too large once they are decoded are refused as well', async () => {
    node.configuration.put('couchdb', 'max_attachment_size', '100000')
    const packed = gzipSync(Buffer.alloc(100_001))
    const refused = await node.request('PUT', '/db/doc/big', packed, {
      'content-type': 'image/x', 'content-encoding': 'gzip',
    })
    expect([refused.status, refused.json.error]).to.deep.equal([413, 'attachment_too_large'])
    expect(refused.json.reason).to.equal(
      'big, decoded from gzip, of doc: 100001 bytes, couchdb/max_attachment_size is 100000',
    )
    const inline = { _attachments: { big: { encoding: 'gzip', data: packed.toString('base64') } } }
    const { error } = (await node.post('/db/_bulk_docs', { docs: [{ _id: 'doc', ...inline }] })).json
    expect(error).to.equal('attachment_too_large')
    expect((await node.get('/db/doc')).status).to.equal(404)
    const fitting = await node.request('PUT', '/db/doc/fits', gzipSync(Buffer.alloc(100_000)), {
      'content-type': 'image/x', 'content-encoding': 'gzip',
    })
    expect(fitting.status).to.equal(201)
  })

  it('of compressible types are stored compressed, and sent as the client takes them', async () => {
    const text = 'the same words, '.repeat(100)
    await node.put('/db/doc/notes', text, { 'content-type': 'text/plain; charset=utf-8' })
    const info = (await node.get('/db/doc?att_encoding_info=true')).json._attachments.notes
    expect([info.encoding, info.length]).to.deep.equal(['gzip', text.length])
    expect(info.encoded_length).to.be.lessThan(100)
    const plain = await node.get('/db/doc/notes')
    expect([plain.text, plain.headers['accept-ranges'], plain.headers['content-length']]).to.deep.equal([
      text, 'none', String(text.length),
    ])
    const packed = await node.get('/db/doc/notes', { 'accept-encoding': 'gzip' })
    expect([packed.headers['content-encoding'], packed.headers['content-length']]).to.deep.equal([
      'gzip', String(info.encoded_length),
    ])
    expect((await node.get('/db/doc?attachments=true')).json._attachments.notes.data).to.equal(
      Buffer.from(text).toString('base64'),
    )
    node.configuration.put('attachments', 'compressible_types', 'application/x-none')
    await node.put('/db/other/notes', text, { 'content-type': 'text/plain' })
    expect((await node.get('/db/other?att_encoding_info=true')).json._attachments.notes.encoding).to.equal(undefined)
  })

  it('that are uploaded compressed keep their bytes and show their decoded length', async () => {
    const packed = gzipSync('content '.repeat(50))
    await node.request('PUT', '/db/doc/p', packed, { 'content-type': 'image/svg+xml', 'content-encoding': 'gzip' })
    const { p } = (await node.get('/db/doc?att_encoding_info=true')).json._attachments
    expect(p).to.deep.include({ digest: `md5-${md5(packed)}`, length: 400, encoded_length: packed.length })
    await node.request('PUT', '/db/odd/p', Buffer.from('no gzip at all'), {
      'content-type': 'image/x', 'content-encoding': 'gzip',
    })
    expect((await node.get('/db/odd')).json._attachments.p.length).to.equal(14)
  })

  it('follow their document in multipart/related, both ways', async () => {
    const following = (length: number, type: string): string =>
      JSON.stringify({ follows: true, length, content_type: type })
    const body = ['--s\r\nContent-Type: application/json\r\n\r\n',
      `{"n":1,"_attachments":{"2":${following(3, 'image/a')},"1":${following(4, 'image/b')}}}`,
      '\r\n--s\r\n\r\ntwo\r\n--s\r\n\r\none!\r\n--s--'].join('')
    const stored = await node.put('/db/doc', body, { 'content-type': 'multipart/related; boundary="s"' })
    expect(stored.json.ok).to.equal(true)
    expect((await node.get('/db/doc/2')).text).to.equal('two')
    expect((await node.get('/db/doc/1')).text).to.equal('one!')
    const answer = await node.get('/db/doc?attachments=true', { accept: 'multipart/related' })
    expect(answer.headers['content-length']).to.equal(String(Buffer.byteLength(answer.text)))
    const boundary = /boundary="(.*)"/.exec(answer.headers['content-type']!)![1]!
    expect(answer.text.split(`--${boundary}`)).to.have.length(5)
    const again = await node.put('/db/copy?new_edits=false', answer.text, {
      'content-type': answer.headers['content-type']!,
    })
    expect([again.status, (await node.get('/db/copy/1')).text]).to.deep.equal([201, 'one!'])
  })

  it('are kept while the attachments after them arrive slowly', async () => {
    const kept: number[] = []
    const slow = new MemoryNode({
      wrap: coordinator => ({
        ...coordinator,
        keepBlobs: (db, id, hashes, context) => {
          kept.push(hashes.length)
          return coordinator.keepBlobs(db, id, hashes, context)
        },
      }),
    })
    await slow.put('/db')
    const body = async function* (): AsyncGenerator<Uint8Array> {
      const json = '{"_attachments":{"a":{"follows":true,"length":1},"b":{"follows":true,"length":1}}}'
      yield Buffer.from(`--s\r\nContent-Type: application/json\r\n\r\n${json}\r\n--s\r\n\r\na\r\n--s\r\n\r\n`)
      for (let minute = 0; minute < 31; minute++) await slow.clock.advance(60_000)
      yield Buffer.from('b\r\n--s--')
    }
    const answer = await slow.put('/db/doc', body(), { 'content-type': 'multipart/related; boundary=s' })
    expect(answer.status).to.equal(201)
    expect(kept).to.deep.equal([1, 1, 1, 1, 1, 1])
    expect(slow.clock.pendingTimers).to.equal(0)
    await slow.stop()
  })

  it('in named parts may arrive in any order, and unknown names are ignored', async () => {
    const put = (id: string, names: readonly string[]): Promise<{ readonly status: number }> => {
      const parts = names.map(name =>
        `--s\r\nContent-Disposition: attachment; filename="${name}"\r\n\r\n${name.at(-1)}\r\n`)
      const json = '{"_attachments":{"a":{"follows":true,"length":1},"b":{"follows":true,"length":1}}}'
      return node.put(`/db/${id}`, `--s\r\nContent-Type: application/json\r\n\r\n${json}\r\n${parts.join('')}--s--`, {
        'content-type': 'multipart/related; boundary=s',
      })
    }
    for (const [id, names] of Object.entries({ turned: ['b', 'a'], spelled: ['x%20a', '"b'] })) {
      expect((await put(id, names)).status).to.equal(201)
      expect([(await node.get(`/db/${id}/a`)).text, (await node.get(`/db/${id}/b`)).text]).to.deep.equal(['a', 'b'])
    }
    expect((await put('short', ['b'])).status).to.equal(400)
    expect((await node.get('/db/short')).status).to.equal(404)
  })

  it('of one name twice are refused', async () => {
    const twice = '{"_attachments":{"a":{"data":"eA=="},"a":{"data":"eQ=="}}}'
    const json = { 'content-type': 'application/json' }
    for (const answer of [
      await node.put('/db/doc', twice), await node.post('/db/_bulk_docs', `{"docs":[${twice}]}`, json),
    ]) {
      expect([answer.status, answer.json.reason]).to.deep.equal([400, 'Duplicate attachments'])
    }
  })

  it('that are uploaded compressed have their decoded length, whatever length is announced', async () => {
    const packed = gzipSync('eight by').toString('latin1')
    const json = JSON.stringify({
      _attachments: { a: { follows: true, length: 3, encoding: 'gzip', encoded_length: packed.length } },
    })
    const body = Buffer.from(
      `--s\r\nContent-Type: application/json\r\n\r\n${json}\r\n--s\r\n\r\n${packed}\r\n--s--`, 'latin1',
    )
    expect((await node.put('/db/doc', body, { 'content-type': 'multipart/related; boundary=s' })).status).to.equal(201)
    const read = await node.get('/db/doc/a')
    expect([read.headers['content-length'], read.text]).to.deep.equal(['8', 'eight by'])
  })

  it('that are announced as gzip but are not a complete gzip stream are stored unchanged', async () => {
    const cut = gzipSync('a text that is cut off').subarray(0, 25)
    for (const [id, bytes] of [['none', Buffer.from('not gzip')], ['cut', cut]] as const) {
      expect((await node.put(`/db/${id}/x`, bytes, { ...binary, 'content-encoding': 'gzip' })).status).to.equal(201)
      const read = await node.get(`/db/${id}/x`)
      expect([read.status, read.headers['content-encoding'], read.headers['content-length']]).to.deep.equal([
        200, undefined, String(bytes.length),
      ])
      const { json } = await node.get(`/db/${id}?attachments=true`, { accept: 'application/json' })
      expect(json._attachments.x.data).to.equal(bytes.toString('base64'))
    }
  })

  it('come with a form of the same site', async () => {
    const { rev } = (await node.put('/db/doc', { kept: true, _attachments: { old: { data: 'b2xk' } } })).json
    const part = (name: string, content: string): string =>
      `--f\r\nContent-Disposition: form-data; ${name}\r\n\r\n${content}\r\n`
    const body = [
      part('name="_rev"', rev), part('name="_attachments"; filename="a.bin"', 'first'),
      part('name="_attachments"; filename=""', ''), '--f--',
    ].join('')
    const answer = await node.post('/db/doc', body, {
      'content-type': 'multipart/form-data; boundary=f', 'referer': 'http://node.example:5984/page',
    })
    expect([answer.status, answer.headers['etag']]).to.deep.equal([201, `"${answer.json.rev}"`])
    const document = (await node.get('/db/doc')).json
    expect([document.kept, Object.keys(document._attachments)]).to.deep.equal([true, ['a.bin', 'old']])
    expect((await node.get('/db/doc/a.bin')).text).to.equal('first')
    const post = (query: string, ...parts: string[]): Promise<Answer> =>
      node.post(`/db/doc${query}`, `${parts.join('')}--f--`, {
        'content-type': 'multipart/form-data; boundary=f', 'referer': 'http://node.example:5984/page',
      })
    const file = part('name="_attachments"; filename="b"', 'x')
    const newest = part('name="_rev"', answer.json.rev)
    expect((await post('', newest, file, file)).json.reason).to.equal('Duplicate attachments')
    expect((await post('', part('name="_rev"', ''), file)).json.reason).to.equal('Invalid rev format')
    expect((await post('', part('name="_doc"', '{}'), newest)).status, 'the document counts').to.equal(409)
    expect((await post(`?rev=${answer.json.rev}`, part('name="_doc"', '{"new":true}'))).status).to.equal(201)
    expect((await node.get('/db/doc')).json).to.include({ new: true })
  })

  it('of a revision with history (new_edits=false) keep the generation that the client names', async () => {
    const base = { _rev: '2-b', _revisions: { start: 2, ids: ['b', 'a'] } }
    await node.put('/db/doc?new_edits=false', {
      ...base, _attachments: { f: { data: 'Zg==', revpos: 1 }, g: { data: 'Zw==' } },
    })
    const next = {
      _rev: '4-d', _revisions: { start: 4, ids: ['d', 'c', 'b', 'a'] }, _attachments: { f: { stub: true, revpos: 1 } },
    }
    const rows = (await node.post('/db/_bulk_docs', { new_edits: false, docs: [{ _id: 'doc', ...next }] })).json
    expect(rows).to.deep.equal([])
    expect((await node.get('/db/doc?attachments=true')).json._attachments).to.deep.equal({
      f: { content_type: 'application/octet-stream', revpos: 1, digest: `md5-${md5('f')}`, data: 'Zg==' },
    })
    expect((await node.get('/db/doc?rev=2-b')).json._attachments.g.revpos).to.equal(0)
    const unknown = { _rev: '9-z', _revisions: { start: 9, ids: ['z', 'y'] }, _attachments: { f: { stub: true } } }
    expect((await node.put('/db/doc?new_edits=false', unknown)).status).to.equal(412)
  })

  it('that a stub takes from a replaced revision are a conflict, unknown ones are an error', async () => {
    const first = (await node.put('/db/doc', { _attachments: { f: { data: 'Zg==' } } })).json.rev
    await node.put('/db/doc', { _rev: first })
    expect((await node.put('/db/doc', { _rev: first, _attachments: { x: { stub: true } } })).status).to.equal(409)
    expect((await node.put('/db/doc', { _attachments: { x: { stub: true } } })).status).to.equal(409)
    expect((await node.put('/db/none', { _attachments: { x: { stub: true } } })).status).to.equal(412)
    const rows = await node.post('/db/_bulk_docs', {
      docs: [{ _id: 'other' }, { _id: 'doc', _attachments: { f: { stub: true } } }],
    })
    expect([rows.status, rows.json[0].ok, rows.json[1].error]).to.deep.equal([201, true, 'conflict'])
  })

  it('are not found by a stub with another or an invalid generation', async () => {
    const { rev } = (await node.put('/db/doc', { _attachments: { f: { data: 'Zg==' } } })).json
    const update = async (revpos: unknown): Promise<number> =>
      (await node.put('/db/doc', { _rev: rev, _attachments: { f: { stub: true, revpos } } })).status
    for (const revpos of [2, 0, -1, '1', 1.5, null]) expect(await update(revpos)).to.equal(412)
    expect(await update(1)).to.equal(201)
  })

  it('are not checked when the revision is already stored', async () => {
    await node.put('/db/doc?new_edits=false', { _rev: '1-a' })
    const again = { _id: 'doc', _rev: '1-a', _attachments: { never: { stub: true, revpos: 1 } } }
    expect((await node.put('/db/doc?new_edits=false', again)).status).to.equal(201)
    expect((await node.post('/db/_bulk_docs', { new_edits: false, docs: [again] })).json).to.deep.equal([])
    expect((await node.get('/db/doc')).json._attachments).to.equal(undefined)
    expect((await node.put('/db/doc?new_edits=false', { ...again, _rev: '1-b' })).status).to.equal(412)
  })

  it('keep their generation in a copy of the document', async () => {
    const { rev } = (await node.put('/db/doc', {})).json
    await node.request('PUT', `/db/doc/a?rev=${rev}`, 'x', binary)
    await node.request('COPY', '/db/doc', undefined, { destination: 'copy' })
    expect((await node.get('/db/copy')).json._attachments.a.revpos).to.equal(2)
  })

  it('that a reader already has are stubs in JSON, also where multipart is acceptable', async () => {
    const { rev } =
      (await node.put('/db/doc', { _attachments: { a: { content_type: 'text/plain', data: 'eA==' } } })).json
    const known = encodeURIComponent(JSON.stringify([rev]))
    const read = await node.get(`/db/doc?atts_since=${known}`, { accept: '*/*' })
    expect([read.json._attachments.a.stub, read.json._attachments.a.encoding]).to.deep.equal([true, 'gzip'])
    const open = await node.get(`/db/doc?open_revs=all&atts_since=${known}`, { accept: 'multipart/mixed' })
    expect(open.text).to.match(/^--\S+\r\nContent-Type: application\/json\r\n/)
    const bulk = await node.post('/db/_bulk_get', { docs: [{ id: 'doc', atts_since: [rev] }] }, {
      accept: 'multipart/mixed',
    })
    expect(bulk.text).to.match(/^--\S+\r\nContent-Type: application\/json\r\n/)
  })

  it('are read of the newest revision, and of a tombstone, where that is asked for', async () => {
    const first = (await node.put('/db/doc', { _attachments: { a: { data: 'b2xk' } } })).json.rev
    const second = (await node.request('PUT', `/db/doc/a?rev=${first}`, 'new', binary)).json.rev
    expect((await node.get(`/db/doc/a?rev=${first}`)).text).to.equal('old')
    expect((await node.get(`/db/doc/a?rev=${first}&latest=true`)).text).to.equal('new')
    await node.put('/db/doc', { _rev: second, _deleted: true, _attachments: { a: { stub: true } } })
    expect((await node.get('/db/doc/a')).status).to.equal(404)
    expect((await node.get('/db/doc/a?deleted=true')).text).to.equal('new')
  })

  it('cannot be deleted under a name that is not allowed', async () => {
    await node.put('/db/doc', {})
    expect((await node.delete('/db/doc/_x')).json).to.deep.equal({
      error: 'bad_request', reason: "Attachment name '_x' starts with prohibited character '_'",
    })
  })

  it('are not posted by a form to local documents', async () => {
    const body = '--f\r\nContent-Disposition: form-data; name="_doc"\r\n\r\n{}\r\n--f--'
    const headers = { 'content-type': 'multipart/form-data; boundary=f', 'referer': 'http://node.example:5984/page' }
    expect((await node.post('/db/_local/doc', body, headers)).status).to.equal(405)
    expect((await node.get('/db/doc')).status).to.equal(404)
  })

  it('are copied with a document to another shard', async () => {
    await node.put('/db/from/f', 'content', binary)
    for (const id of ['a', 'b', 'c', 'd']) {
      expect((await node.request('COPY', '/db/from', undefined, { destination: id })).status).to.equal(201)
      expect((await node.get(`/db/${id}/f`)).text).to.equal('content')
    }
  })

  it('of a megabyte and more travel in pieces as Base64', async () => {
    const content = Buffer.alloc(1_500_001, 'abcdefg')
    await node.request('PUT', '/db/doc/big', content, binary)
    const inline = await node.get('/db/doc?attachments=true')
    expect(Buffer.from(inline.json._attachments.big.data, 'base64').equals(content)).to.equal(true)
    expect(inline.chunks).to.be.greaterThan(5)
    const bulk = await node.post('/db/_bulk_get?attachments=true', { docs: [{ id: 'doc' }] })
    expect(bulk.json.results[0].docs[0].ok._attachments.big.data.length).to.equal(2_000_004)
    const list = await node.get('/db/_all_docs?include_docs=true&attachments=true')
    expect(list.json.rows[0].doc._attachments.big.data.length).to.equal(2_000_004)
  })

  it('with damaged content result in an error, never in wrong bytes', async () => {
    await node.request('PUT', '/db/small/f', Buffer.from('content'), binary)
    for (const replica of node.replicas.values()) {
      replica.blobs.damageBlob(createHash('sha256').update('content').digest('hex'), 'changed')
    }
    expect((await node.get('/db/small/f')).status).to.equal(500)
  })

  it('with names or types that would break headers are sent without breaking them', async () => {
    await node.put('/db/doc', {
      _attachments: { 'a"b\r\nX: y': { content_type: 'image/x\r\nX-Evil: 1', data: 'Zg==' } },
    })
    const answer = await node.get('/db/doc?attachments=true', { accept: 'multipart/related' })
    expect(answer.text).to.include('filename="a\\"b  X: y"\r\nContent-Type: application/octet-stream\r\n')
    expect((await node.get('/db/doc/a%22b%0D%0AX%3A%20y')).headers['content-type']).to.equal('application/octet-stream')
  })
})

function md5(content: string | Uint8Array): string {
  return createHash('md5').update(content).digest('base64')
}
