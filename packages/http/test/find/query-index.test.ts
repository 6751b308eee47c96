import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

interface Listing {
  readonly total_rows: number
  readonly indexes: readonly { readonly ddoc: string; readonly name: string; readonly def: object }[]
}

describe('the indexes of queries', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
  })
  afterEach(() => node.stop())

  const create = (body: object): Promise<Answer> => node.during(node.post('/db/_index', body))
  const listed = async (): Promise<Listing> => (await node.during(node.get('/db/_index'))).json as Listing

  it('keep the order of fields whose names look like numbers', async () => {
    await create({ index: { fields: ['b', '2', '1'] }, ddoc: 'd', name: 'n' })
    expect((await listed()).indexes[1]!.def).to.deep.equal({ fields: [{ b: 'asc' }, { 2: 'asc' }, { 1: 'asc' }] })
    expect((await create({ index: { fields: ['b', '2', '1'] }, ddoc: 'd', name: 'n' })).json)
      .to.include({ result: 'exists' })
    expect((await create({ index: { fields: ['1', '2', 'b'] }, ddoc: 'd', name: 'n' })).json)
      .to.include({ result: 'created' })
  })

  it('are all saved when requests add them to one design document at the same time', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const answers = await Promise.all(names.map(name => create({ index: { fields: [name] }, ddoc: 'd', name })))
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200])
    expect((await listed()).indexes.slice(1).map(({ name }) => name)).to.deep.equal(names)
  })

  it('leave the other members of their design document as they are, with all digits', async () => {
    const rest = '"validate_doc_update":{"newDoc.n":{"$gt":12345678901234567890}},"1":1.50,"about":{"2":1,"1":2}'
    await node.during(node.put('/db/_design/d', `{"language":"query","z":true,${rest}}`))
    await create({ index: { fields: ['a'] }, ddoc: 'd', name: 'n' })
    expect((await node.during(node.get('/db/_design/d'))).text).to.include(`"z":true,${rest}`)
    await node.during(node.delete('/db/_index/d/json/n'))
    const left = await node.during(node.get('/db/_design/d'))
    expect([left.status, left.text.includes(rest)]).to.deep.equal([200, true])
    expect((await listed()).total_rows).to.equal(1)
  })

  it('of design documents with attachments keep these', async () => {
    await node.during(node.put('/db/_design/d', {
      language: 'query', _attachments: { 'a.txt': { data: 'aGVsbG8=', content_type: 'text/plain' } },
    }))
    await create({ index: { fields: ['a'] }, ddoc: 'd', name: 'n' })
    expect((await node.during(node.get('/db/_design/d/a.txt'))).text).to.equal('hello')
  })

  it('get names from their definitions, so that equal definitions give one index', async () => {
    const { json: first } = await create({ index: { fields: ['a', { b: 'asc' }] } })
    const { json: second } = await create({ index: { fields: [{ a: 'asc' }, 'b'] } })
    const { json: other } = await create({ index: { fields: ['b', 'a'] } })
    expect([first, second, other].map(json => (json as { result: string }).result))
      .to.deep.equal(['created', 'exists', 'created'])
    expect(second).to.include({ name: (first as { name: string }).name })
  })

  it('with different names and no design document get different ones', async () => {
    const answers = await Promise.all(['a', 'b'].map(name => create({ index: { fields: ['x'] }, name })))
    expect(new Set(answers.map(({ json }) => (json as { id: string }).id)).size).to.equal(2)
  })

  it('are not added to a design document of another language, nor to one without a language', async () => {
    await node.put('/db/_design/none', {})
    await node.put('/db/_design/js', { language: 'javascript' })
    for (const ddoc of ['none', 'js']) {
      const { status, json } = await create({ index: { fields: ['a'] }, ddoc, name: 'n' })
      expect([status, (json as { error: string }).error], ddoc).to.deep.equal([400, 'invalid_ddoc_lang'])
    }
  })

  it('are refused when a field has no name, or would take too long to read of each document', async () => {
    for (const [field, error] of [['a..b', 'invalid_field_name'], [`a${'.a'.repeat(130_000)}`, 'bad_arg']] as const) {
      expect((await create({ index: { fields: [field] } })).json).to.include({ error })
    }
  })

  it('that need a search service are refused', async () => {
    for (const type of ['text', 'nouveau']) {
      const { status, json } = await create({ index: {}, type })
      expect([status, json]).to.deep.equal([503, { error: 'required index service unavailable', reason: type }])
    }
  })

  it('of a partitioned database are all partitioned in one design document, or none', async () => {
    await node.put('/parts?partitioned=true')
    const add = async (name: string, partitioned?: boolean): Promise<number> => {
      const body = { index: { fields: [name] }, ddoc: 'd', name, ...(partitioned !== undefined && { partitioned }) }
      return (await node.during(node.post('/parts/_index', body))).status
    }
    expect([await add('a'), await add('b', true), await add('c', false)]).to.deep.equal([200, 200, 400])
  })

  it('are written by administrators of the database only', async () => {
    await node.put('/db/_security', { members: { names: [], roles: [] } })
    for (const [method, path, body] of [
      ['POST', '/db/_index', { index: { fields: ['a'] } }], ['POST', '/db/_index/_bulk_delete', { docids: ['d'] }],
      ['DELETE', '/db/_index/d/json/n', undefined],
    ] as const) {
      const { status } = await node.during(node.request(method, path, body, { authorization: '' }))
      expect(status, path).to.equal(401)
    }
  })

  it('can be removed together, and the answer says what became of each design document', async () => {
    await create({ index: { fields: ['a'] }, ddoc: 'd', name: 'a' })
    await create({ index: { fields: ['b'] }, ddoc: 'd', name: 'b' })
    await node.put('/db/_design/js', { views: { v: { map: 'doc => emit(doc._id)' } } })
    const { json } = await node.during(node.post('/db/_index/_bulk_delete', { docids: ['d', '_design/js', 'd'] }))
    expect(json).to.deep.equal({
      success: [{ id: '_design/d', ok: true }], fail: [{ id: '_design/js', error: 'not_found' }],
    })
    expect((await node.during(node.get('/db/_design/d'))).status).to.equal(404)
  })

  it('cannot be listed with numbers that are too small, which is no failure of the server', async () => {
    expect((await node.during(node.get('/db/_index?limit=0'))).json.error).to.equal('invalid_list_index_params')
    expect(node.log.messages('error')).to.deep.equal([])
  })

  it('are listed in parts', async () => {
    for (const [query, status] of [
      ['limit=0', 500], ['skip=-1', 500], ['limit=x', 400], ['limit=1&skip=1', 200],
    ] as const) {
      expect((await node.during(node.get(`/db/_index?${query}`))).status, query).to.equal(status)
    }
  })
})
