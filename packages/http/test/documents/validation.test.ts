import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const refuseBad = `(doc, old, user) => {
  if (doc.bad || (doc._attachments && doc._attachments["bad.exe"])) throw { forbidden: "bad" }
  if (doc._deleted && old.keep) throw { forbidden: "it stays" }
  if (doc.login && !user.name) throw { unauthorized: "Please log in." }
  if (doc.broken) throw new Error("broken")
  if ("structured" in doc) throw { forbidden: doc.structured }
}`

describe('validation functions', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/_design/v', { validate_doc_update: refuseBad })
  })
  afterEach(() => node.stop())

  async function revision(id: string, value: object): Promise<string> {
    return (await node.put(`/db/${id}`, value)).json.rev
  }

  const refused = { error: 'forbidden', reason: 'bad' }

  it('decide about PUT, POST and attachments', async () => {
    expect(await node.put('/db/x', { bad: 1 })).to.deep.include({ status: 403, json: refused })
    expect(await node.post('/db', { bad: 1 })).to.deep.include({ status: 403, json: refused })
    expect((await node.get('/db/x')).status).to.equal(404)
    const rev = await revision('y', {})
    expect(await node.put(`/db/y/bad.exe?rev=${rev}`, 'x')).to.deep.include({ status: 403, json: refused })
    expect((await node.put(`/db/y/good.txt?rev=${rev}`, 'x')).status).to.equal(201)
  })

  it('give reasons that are other JSON values than texts', async () => {
    for (const reason of [{ member: 'n', allowed: [1, 2] }, ['a'], 5, null]) {
      const answer = await node.put('/db/x', { structured: reason })
      expect(answer).to.deep.include({ status: 403, json: { error: 'forbidden', reason } })
      const bulk = await node.post('/db/_bulk_docs', { docs: [{ _id: 'x', structured: reason }] })
      expect(bulk.json).to.deep.equal([{ id: 'x', error: 'forbidden', reason }])
    }
  })

  it('decide about deletions', async () => {
    const rev = await revision('x', { keep: true })
    const answer = await node.delete(`/db/x?rev=${rev}`)
    expect(answer).to.deep.include({ status: 403, json: { error: 'forbidden', reason: 'it stays' } })
    expect((await node.get('/db/x')).status).to.equal(200)
  })

  it('decide about revisions with their history', async () => {
    const rev = `1-${'a'.repeat(32)}`
    const put = await node.put('/db/x?new_edits=false', { _rev: rev, bad: 1 })
    expect(put).to.deep.include({ status: 403, json: refused })
    const bulk = await node.post('/db/_bulk_docs', {
      new_edits: false, docs: [{ _id: 'x', _rev: rev, bad: 1 }, { _id: 'y', _rev: rev }],
    })
    expect(bulk).to.deep.include({ status: 201, json: [{ id: 'x', rev, ...refused }] })
    expect((await node.get('/db/y')).status).to.equal(200)
  })

  it('decide before the answer to batch=ok', async () => {
    expect(await node.put('/db/x?batch=ok', { bad: 1 })).to.deep.include({ status: 403, json: refused })
    expect((await node.put('/db/y?batch=ok', {})).status).to.equal(202)
    await node.api.stop()
    const context = { requestId: 'test', signal: new AbortController().signal }
    const database = node.control.state()!.databases.get('db')!
    expect(await node.coordinator.openDocument(database, 'y', {}, context)).to.not.equal(null)
    expect(await node.coordinator.openDocument(database, 'x', {}, context)).to.equal(null)
  })

  it('refuse single rows of _bulk_docs, conflict first', async () => {
    await revision('x', {})
    const docs = [{ _id: 'x', bad: 1 }, { _id: 'y', bad: 1 }, { _id: 'z' }]
    const bulk = await node.post('/db/_bulk_docs', { docs })
    expect(bulk.status).to.equal(201)
    expect(bulk.json.map((row: any) => row.error ?? 'ok')).to.deep.equal(['conflict', 'forbidden', 'ok'])
  })

  it('refuse single rows of _bulk_docs also by other errors than forbidden', async () => {
    const docs = [{ _id: 'a', _rev: '1-a', broken: 1 }, { _id: 'b', _rev: '1-a' }]
    for (const body of [{ docs: docs.map(({ _rev, ...doc }) => doc) }, { docs, new_edits: false }]) {
      const { status, json } = await node.post('/db/_bulk_docs', body)
      expect([status, json[0].id, json[0].error]).to.deep.equal([201, 'a', 'unknown_error'])
    }
    const named = 'd => { if (d.named) throw ["error", "x", "y"]; if (d.required) require(d.required) }'
    await node.put('/db/_design/named', { validate_doc_update: named })
    const bulk = await node.post('/db/_bulk_docs', { docs: [{ named: 1 }, {}, { required: 'z' }] })
    expect([bulk.status, ...bulk.json.map(({ error }: { error?: string }) => error)]).to.deep.equal(
      [201, 'x', undefined, 'invalid_require_path'])
    await node.put('/db/_design/unknown', { language: 'cobol', validate_doc_update: 'STOP RUN' })
    const unknown = await node.post('/db/_bulk_docs', { docs: [{}] })
    expect([unknown.status, unknown.json[0].error]).to.deep.equal([500, 'not_implemented'])
  })

  it('may ask for a login', async () => {
    await node.put('/db/_security', { members: { names: [], roles: [] }, admins: { names: [], roles: [] } })
    const anonymous = await node.put('/db/x', { login: true }, { authorization: '' })
    expect(anonymous).to.deep.include({ status: 401, json: { error: 'unauthorized', reason: 'Please log in.' } })
    expect((await node.put('/db/x', { login: true })).status).to.equal(201)
  })

  it('have the design document as `this`, whether or not they load modules from it', async () => {
    const seen = '[this._id, this._rev, this.limits.top]'
    for (const [source, expected] of [
      [`function () { throw { forbidden: ${seen} } }`, ['_design/v', '2-', 7]],
      [`function () { throw { forbidden: ${seen}.concat(require("lib/max").max) } }`, ['_design/v', '3-', 7, 9]],
    ] as const) {
      const current = (await node.get('/db/_design/v')).json
      await node.put('/db/_design/v', {
        _rev: current._rev, limits: { top: 7 }, lib: { max: 'exports.max = 9' }, validate_doc_update: source,
      })
      const { status, json } = await node.put('/db/x', {})
      expect(status).to.equal(403)
      const [id, rev, ...others] = json.reason
      expect([id, rev.slice(0, 2), ...others]).to.deep.equal(expected)
    }
  })

  it('answer 500 without a reference to the log when they fail', async () => {
    const failed = await node.put('/db/x', { broken: 1 })
    expect([failed.status, Object.keys(failed.json)]).to.deep.equal([500, ['error', 'reason']])
    expect(failed.json).to.have.property('error', 'unknown_error')
    expect(failed.json.reason).to.include('broken')
    expect(node.log.lines.filter(({ level }) => level === 'error')).to.deep.equal([])
  })
})

describe('a selector that validates writes', () => {
  it('is refused when it is not valid, so that it does not refuse all writes', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    const design = { language: 'query', validate_doc_update: { 'newDoc.n': { $gt: 1, $foo: 2 } } }
    expect(await node.put('/db/_design/v', design)).to.deep.include({
      status: 400, json: { error: 'invalid_design_doc', reason: 'validate_doc_update: Invalid operator: $foo' },
    })
    expect((await node.put('/db/x', {})).status).to.equal(201)
    await node.stop()
  })
})
