import { openedBytesMax } from '@sectional/core'
import { expect } from 'chai'
import { basic, MemoryNode } from '../memory-node.ts'

describe('_bulk_docs', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=3')
  })
  afterEach(() => node.stop())

  it('gives each document its own row, in order', async () => {
    const first = await node.post('/db/_bulk_docs', { docs: [{ _id: 'a', n: 1 }, { n: 2 }, { _id: '_local/l', n: 3 }] })
    expect(first.status).to.equal(201)
    expect(first.json[0]).to.include({ ok: true, id: 'a' })
    expect(first.json[1].id).to.match(/^[0-9a-f]{32}$/)
    expect(first.json[2]).to.deep.equal({ ok: true, id: '_local/l', rev: '0-1' })
    const second = await node.post('/db/_bulk_docs', {
      docs: [
        { _id: 'a' }, { _id: 'a', _rev: first.json[0].rev, _deleted: true }, { _id: 'a', _rev: first.json[0].rev },
      ],
    })
    expect(second.json.map((row: any) => row.error ?? 'ok')).to.deep.equal(['conflict', 'ok', 'conflict'])
  })

  it('refuses the whole request for one unreadable document', async () => {
    const refusals: readonly [unknown, number, string][] = [
      [{ documents: [] }, 400, 'POST body must include `docs` parameter.'],
      [{ docs: {} }, 400, '`docs` parameter must be an array.'],
      [{ docs: [], new_edits: 'no' }, 400, '`new_edits` parameter must be a boolean.'],
      [[], 400, 'Request body must be a JSON object'],
      [{ docs: [{ _id: 'ok' }, null] }, 400, 'Document must be a JSON object'],
      [{ docs: [{ _id: 'ok' }, { _id: '_bad' }] }, 400, 'Only reserved document ids may start with underscore.'],
      [
        { docs: [{ _id: 'ok' }], new_edits: false }, 400,
        'When `new_edits: false`, the document needs `_rev` or `_revisions` specified',
      ],
      [
        { docs: [{ _id: 'ok', _rev: '1-a' }, { _id: '_local/l' }], new_edits: false }, 400,
        'When `new_edits: false`, the document needs `_rev` or `_revisions` specified',
      ],
    ]
    for (const [body, status, reason] of refusals) {
      const refused = await node.post('/db/_bulk_docs', body)
      expect([refused.status, refused.json.reason]).to.deep.equal([status, reason])
    }
    expect((await node.get('/db/ok')).status).to.equal(404)
  })

  it('lists only failures for new_edits=false', async () => {
    const docs = [{ _id: 'a', _rev: '2-a' }, { _id: 'a', _rev: '2-b' }]
    expect((await node.post('/db/_bulk_docs', { new_edits: false, docs })).json).to.deep.equal([])
    expect((await node.get('/db/a?conflicts=true')).json).to.deep.include({ _rev: '2-b', _conflicts: ['2-a'] })
  })

  it('refuses all_or_nothing and writes nothing', async () => {
    const refused = await node.post('/db/_bulk_docs', { all_or_nothing: true, docs: [{ _id: 'a' }] })
    expect([refused.status, refused.json[0].error]).to.deep.equal([417, 'not_implemented'])
    expect((await node.get('/db/a')).status).to.equal(404)
  })

  it('refuses design documents of members in their own rows', async () => {
    await node.put('/db/_security', {})
    const bulk = await node.request('POST', '/db/_bulk_docs', { docs: [{ _id: '_design/app' }, { _id: 'fine' }] }, {
      authorization: '',
    })
    expect(bulk.json[0]).to.deep.equal({
      id: '_design/app', error: 'unauthorized', reason: 'You are not a db or server admin.',
    })
    expect(bulk.json[1].ok).to.equal(true)
  })

  it('refuses broken design documents in their own rows', async () => {
    const docs = [{ _id: '_design/bad', views: 5 }, { _id: '_design/good' }, { _id: 'fine' }]
    const rows = (await node.post('/db/_bulk_docs', { docs })).json
    expect(rows.map((row: any) => row.error ?? 'ok')).to.deep.equal(['invalid_design_doc', 'ok', 'ok'])
    const replicated = {
      new_edits: false, docs: [{ _id: '_design/bad', _rev: '1-a', views: 5 }, { _id: 'other', _rev: '1-a' }],
    }
    expect((await node.post('/db/_bulk_docs', replicated)).json.map((row: any) => [row.id, row.error])).to.deep.equal(
      [['_design/bad', 'invalid_design_doc']],
    )
    expect((await node.get('/db/other')).status).to.equal(200)
  })

  it('needs the JSON content type and valid credentials', async () => {
    expect((await node.post('/db/_bulk_docs', '{"docs":[]}', { 'content-type': 'text/plain' })).status).to.equal(415)
    expect((await node.post('/db/_bulk_docs', { docs: [] }, { authorization: basic('x', 'y') })).status).to.equal(401)
  })
})

describe('_bulk_get of large documents behind small ones', () => {
  it('keeps few of them in memory at once, and answers in request order', async () => {
    const shards = 3
    const largeBytes = 400_000
    let mostBytes = 0
    const node = new MemoryNode({ wrap: coordinator => ({
      ...coordinator,
      openManyRevisions: async (...request) => {
        const answers = await coordinator.openManyRevisions(...request)
        const revisions = answers.flatMap(answer => answer ?? [])
        mostBytes = Math.max(
          mostBytes, revisions.reduce((sum, each) => sum + (each.kind === 'found' ? each.revision.body.length : 0), 0),
        )
        return answers
      },
    }) })
    await node.put(`/db?q=${shards}`)
    const ids = Array.from({ length: 140 }, (_, index) => `doc-${index}`)
    const isLarge = (index: number): boolean => index >= 80 && index % 5 !== 0
    await node.post('/db/_bulk_docs', {
      docs: ids.map((_id, index) => ({ _id, text: isLarge(index) ? 'x'.repeat(largeBytes) : 'x' })),
    })
    const asked = ids.flatMap((id, index) => index % 7 === 0 ? [{ id }, { id: `none-${index}` }, {}] : [{ id }])
    for (const query of ['', '?r=1&revs=true']) {
      mostBytes = 0
      const { results } = (await node.post(`/db/_bulk_get${query}`, { docs: asked })).json
      expect(results.map((result: any) => result.id ?? undefined)).to.deep.equal(
        asked.map(({ id }: { id?: string }) => id),
      )
      const lengths = results.flatMap((result: any) =>
        result.docs[0].ok === undefined ? [] : [result.docs[0].ok.text.length])
      expect(lengths).to.deep.equal(ids.map((_, index) => isLarge(index) ? largeBytes : 1))
      expect(mostBytes).to.be.within(largeBytes, shards * (openedBytesMax + largeBytes))
    }
    await node.stop()
  })
})

describe('_bulk_get', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=3')
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [
      { _id: 'one', _revisions: { start: 2, ids: ['b', 'a'] }, v: 1 }, { _id: 'two', _rev: '1-x' },
      { _id: 'two', _rev: '1-y' }, { _id: 'gone', _rev: '1-g', _deleted: true },
    ] })
  })
  afterEach(() => node.stop())

  const ask = (docs: unknown, query = '', headers: Record<string, string> = {}) =>
    node.post(`/db/_bulk_get${query}`, { docs }, headers)

  it('answers in request order, one element for each item', async () => {
    const {
      results,
    } = (await ask([{ id: 'two' }, { id: 'one', rev: '2-b' }, { id: 'gone' }, { id: 'one', rev: '2-b' }])).json
    expect(results.map((result: any) => [result.id, result.docs.map((item: any) => item.ok._rev)])).to.deep.equal([
      ['two', ['1-y', '1-x']], ['one', ['2-b']], ['gone', ['1-g']], ['one', ['2-b']],
    ])
    expect(results[2].docs[0].ok._deleted).to.equal(true)
    expect((await ask([{ id: 'one' }], '?revs=true')).json.results[0].docs[0].ok._revisions).to.deep.equal({
      start: 2, ids: ['b', 'a'],
    })
  })

  it('reports unknown documents, unknown revisions and bad items in their places', async () => {
    const items = [
      { id: 'none' }, { id: 'one', rev: '9-z' }, null, {}, { rev: '1-a' }, { id: 'one', rev: 'bad' },
      { id: 'one', rev: null }, { id: 5 }, { id: '_x' }, { id: 'one', atts_since: 'x' },
      { id: 'one', atts_since: ['1-a', 5] },
    ]
    const errors = (await ask(items)).json.results.map((result: any) => result.docs[0].error)
    expect(errors).to.deep.equal([
      { id: 'none', rev: 'undefined', error: 'not_found', reason: 'missing' },
      { id: 'one', rev: '9-z', error: 'not_found', reason: 'missing' },
      { id: null, rev: null, error: 'bad_request', reason: 'document must be a JSON object' },
      { id: null, rev: null, error: 'bad_request', reason: 'document must be a JSON object' },
      { id: null, rev: null, error: 'bad_request', reason: 'document id missed' },
      { id: 'one', rev: 'bad', error: 'bad_request', reason: 'Invalid rev format' },
      { id: 'one', rev: null, error: 'bad_request', reason: 'Invalid rev format' },
      { id: 5, rev: null, error: 'illegal_docid', reason: 'Document id must be a string' },
      { id: '_x', rev: null, error: 'illegal_docid', reason: 'Only reserved document ids may start with underscore.' },
      { id: 'one', rev: 'x', error: 'bad_request', reason: 'att_since value must be array of revs.' },
      { id: 'one', rev: 5, error: 'bad_request', reason: 'Invalid rev format' },
    ])
  })

  it('is multipart only where JSON is not acceptable', async () => {
    const parts = await ask([{ id: 'one' }, { id: 'none' }], '', { accept: 'multipart/related' })
    expect(parts.headers['content-type']).to.match(/^multipart\/related; boundary="/)
    expect(parts.text).to.contain('Content-Type: application/json; error="true"')
    for (const accept of [
      'multipart/mixed, application/json', 'application/*, multipart/mixed', 'multipart/mixed;q=0, */*',
    ]) {
      expect((await ask([{ id: 'one' }], '', { accept })).json.results, accept).to.have.length(1)
    }
    expect((await ask([], '', { accept: 'multipart/mixed, application/json;q=0' })).headers['content-type']).to.match(
      /^multipart\/mixed; boundary="/,
    )
  })

  it('names document and revision in the head of a part with attachments', async () => {
    const { rev } = (await node.put('/db/with', { _attachments: { a: { data: 'YQ==' } } })).json
    const parts = await ask([{ id: 'with' }], '', { accept: 'multipart/mixed' })
    expect(parts.text).to.contain(
      `\r\nX-Doc-Id: with\r\nX-Rev-Id: ${rev}\r\nContent-Type: multipart/related; boundary=`,
    )
  })

  it('refuses ids that the database cannot have', async () => {
    await node.put('/parts?partitioned=true')
    const {
      results,
    } = (await node.post('/parts/_bulk_get', { docs: [{ id: 'bare' }, { id: ':a' }, { id: 'p:a' }] })).json
    expect(results.map((result: any) => result.docs[0].error.error)).to.deep.equal([
      'illegal_docid', 'illegal_partition', 'not_found',
    ])
  })

  it('refuses the parameters of other endpoints and bodies without docs', async () => {
    expect((await ask([], '?rev=1-a')).json.reason).to.equal('"rev" query parameter is not acceptable')
    expect((await node.post('/db/_bulk_get', {})).json.reason).to.equal("Missing JSON list of 'docs'.")
  })
})

describe('_revs_diff and _missing_revs', () => {
  it('name what the database lacks, and nothing else', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=3')
    await node.put('/db/doc?new_edits=false', { _revisions: { start: 2, ids: ['b', 'a'] } })
    const asked = { doc: ['2-b', '3-c'], known: [], unknown: ['1-x'], ['__proto__']: ['1-y'] }
    const body = JSON.stringify(asked).replace('"known"', '"__proto__":["1-y"],"known"')
    const type = { 'content-type': 'application/json' }
    expect((await node.post('/db/_revs_diff', body, type)).text.trim()).to.contain('"__proto__":{"missing":["1-y"]}')
    expect((await node.post('/db/_revs_diff', { doc: ['2-b', '3-c'] })).json).to.deep.equal({
      doc: { missing: ['3-c'], possible_ancestors: ['2-b'] },
    })
    expect((await node.post('/db/_missing_revs', { doc: ['2-b', '3-c'], unknown: ['1-x'] })).json).to.deep.equal({
      missing_revs: { doc: ['3-c'], unknown: ['1-x'] },
    })
    for (const long of ['x'.repeat(65_537), 'é'.repeat(32_769)]) {
      const named = { [long]: ['1-a'] }
      const bodies = { _revs_diff: named, _missing_revs: named, _purge: named, _bulk_get: { docs: [{ id: long }] } }
      for (const [path, tooLong] of Object.entries(bodies)) {
        const { status, json } = await node.post(`/db/${path}`, tooLong)
        expect(status, path).to.equal(400)
        expect(json, path).to.include({ error: 'illegal_docid', reason: 'Document id is too long' })
      }
    }
    expect((await node.post('/db/_revs_diff', {})).json).to.deep.equal({})
    expect((await node.post('/db/_revs_diff', { doc: 'x' })).status).to.equal(400)
    expect((await node.post('/db/_revs_diff', { doc: ['x'] })).json.reason).to.equal('Invalid rev format')
    await node.stop()
  })

  it('purges no id without a partition of a partitioned database', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=2&partitioned=true')
    const { status, json } = await node.post('/db/_purge', { 'p:1': ['1-a'], plain: ['1-a'] })
    expect([status, json.error]).to.deep.equal([400, 'illegal_docid'])
    await node.stop()
  })
})
