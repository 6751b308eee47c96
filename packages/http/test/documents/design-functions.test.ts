import assert from 'node:assert/strict'
import { SandboxError, type SandboxErrorCode } from '@sectional/runtime'
import { MemoryNode, type Answer } from '../memory-node.ts'

const broken = { views: { v: { map: 'function (doc) {\n  emit(doc._id null)\n}' } } }
const brokenReason = 'Compilation of the map function in the \'v\' view failed: '
  + 'missing ) after argument list (line 2, column 12)'

describe('saving a design document', () => {
  let node: MemoryNode

  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=2')
  })
  afterEach(() => node.stop())

  function assertRefused(answer: Answer, reason: string): void {
    assert.deepEqual([answer.status, answer.json], [400, { error: 'compilation_error', reason }])
  }

  const refused: Readonly<Record<string, readonly [view: object, reason: string]>> = {
    'a map function with a syntax error': [broken.views.v, brokenReason],
    'a map function that is none': [{ map: '42' },
      'Compilation of the map function in the \'v\' view failed: The source does not evaluate to a function.'],
    'a reduce function with a syntax error': [{ map: 'doc => {}', reduce: '(keys, values => 1' },
      'Compilation of the reduce function in the \'v\' view failed: Unexpected end of input (line 1, column 19)'],
    'a reduce function that is none': [{ map: 'doc => {}', reduce: '"just text"' },
      'Compilation of the reduce function in the \'v\' view failed: The source does not evaluate to a function.'],
    'a map function that throws before it is one': [{ map: 'missing(); function (doc) {}' },
      'Compilation of the map function in the \'v\' view failed: ReferenceError: missing is not defined'],
  }
  for (const [name, [view, reason]] of Object.entries(refused)) {
    it(`refuses ${name}`, async () => {
      assertRefused(await node.put('/db/_design/d', { views: { fine: { map: 'doc => emit(1)' }, v: view } }), reason)
      assert.equal((await node.get('/db/_design/d')).status, 404)
    })
  }

  it('refuses it whatever the request', async () => {
    assertRefused(await node.post('/db', { _id: '_design/d', ...broken }), brokenReason)
    assertRefused(await node.put('/db/_design/d?batch=ok', broken), brokenReason)
    const revision = `1-${'a'.repeat(32)}`
    assertRefused(await node.put('/db/_design/d?new_edits=false', { _rev: revision, ...broken }), brokenReason)
    await node.put('/db/plain', broken)
    assertRefused(await node.request('COPY', '/db/plain', undefined, { destination: '_design/d' }), brokenReason)
    const form = '--b\r\nContent-Disposition: form-data; name="_doc"\r\n\r\n'
      + `${JSON.stringify(broken)}\r\n--b--`
    assertRefused(await node.post('/db/_design/d', form, {
      'content-type': 'multipart/form-data; boundary=b', referer: 'http://node.example:5984/',
    }), brokenReason)
    assert.equal((await node.get('/db/_design/d')).status, 404)
  })

  it('refuses it alone in a bulk write', async () => {
    const docs = [{ _id: 'a' }, { _id: '_design/d', ...broken }, { _id: '_design/e', views: {} }]
    const { status, json } = await node.post('/db/_bulk_docs', { docs })
    assert.deepEqual([status, json[0].ok, json[2].ok], [201, true, true])
    assert.deepEqual(json[1], { id: '_design/d', error: 'compilation_error', reason: brokenReason })
    const _rev = `1-${'a'.repeat(32)}`
    const replicated = await node.post('/db/_bulk_docs', {
      new_edits: false, docs: [{ _id: 'b', _rev }, { _id: '_design/d', _rev, ...broken }],
    })
    assert.deepEqual(replicated.json,
      [{ id: '_design/d', rev: _rev, error: 'compilation_error', reason: brokenReason }])
    assert.equal((await node.get('/db/b')).status, 200)
  })

  it('compiles with the modules of views.lib', async () => {
    const map = 'var name = require("views/lib/names").first; function (doc) { emit(doc[name]) }'
    const lib = { names: 'exports.first = "x"' }
    assert.equal((await node.put('/db/_design/d', { views: { lib, v: { map } } })).status, 201)
    assert.equal((await node.put('/db/_design/e', { views: { v: { map } } })).status, 400)
  })

  it('accepts what CouchDB does not compile', async () => {
    const accepted = [
      { validate_doc_update: 'function( {' },
      { shows: { s: '(' }, lists: { l: '}' }, updates: { u: '(' }, filters: { f: '[' }, rewrites: 'function (' },
      { ...broken, language: 'erlang' },
      { ...broken, _deleted: true },
      { views: { lib: { module: 'exports.x = (' }, v: { map: 'doc => unknown(doc)', reduce: '_sum' } } },
    ]
    for (const [number, design] of accepted.entries()) {
      const { status } = await node.put(`/db/_design/${number}`, design)
      assert.ok(status === 201 || '_deleted' in design && status === 200, `${number}: ${status}`)
    }
    assert.equal((await node.put('/db/_local/design', broken)).status, 201)
  })

  describe('when the sandbox fails', () => {
    function fail(code: SandboxErrorCode): () => number {
      let calls = 0
      Object.assign(node.runtime.sandbox, { compile: async () => {
        calls++
        throw new SandboxError(code, 'as planned')
      } })
      return () => calls
    }
    const design = { views: { v: { map: 'doc => {}' }, w: { map: 'doc => emit(1)' } } }

    it('saves it unchecked on a machine that runs no functions', async () => {
      fail('unsupported')
      assert.equal((await node.put('/db/_design/d', broken)).status, 201)
    })

    for (const code of ['timeout', 'memory', 'crashed'] as const) {
      it(`refuses a source that ends with ${code} when it is compiled, after the first one`, async () => {
        const calls = fail(code)
        assertRefused(await node.put('/db/_design/d', design),
          'Compilation of the map function in the \'v\' view failed: as planned')
        assert.equal(calls(), 1)
      })
    }

    it('asks the client to try again when the sandbox is overloaded', async () => {
      fail('overloaded')
      const { status, headers, json } = await node.put('/db/_design/d', design)
      assert.deepEqual([status, headers['retry-after'], json.reason], [503, '1', 'as planned'])
    })

    it('gives up after 30 s', async () => {
      let calls = 0
      Object.assign(node.runtime.sandbox, { compile: async () => {
        calls++
        await new Promise<void>(resolve => { node.clock.setTimer(4_000, resolve) })
      } })
      const views = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`v${n}`, { map: `doc => emit(${n})` }]))
      const docs = Array.from({ length: 3 }, (_, n) => ({ _id: `_design/${n}`, views }))
      const { status, json } = await node.during(node.post('/db/_bulk_docs', { docs }))
      assert.deepEqual([status, calls], [500, 8])
      for (const { error, reason } of json) {
        assert.deepEqual([error, reason], ['service unavailable', 'The functions were not compiled within 30000 ms'])
      }
    })
  })

  it('does not change what the functions of the saved design document see', async () => {
    await node.put('/db/_design/d', { validate_doc_update: 'doc => { if (!doc.type) throw { forbidden: "no type" } }' })
    const map = '(Object.prototype.type = "any", doc => { emit(1) })'
    const refused = await node.put('/db/_design/d', { views: { v: { map }, broken: { map: '42' } } })
    assert.equal(refused.status, 400)
    assert.equal((await node.put('/db/a', {})).status, 403)
  })

  it('compiles nothing for others than administrators', async () => {
    Object.assign(node.runtime.sandbox, { compile: async () => assert.fail('a function was compiled') })
    await node.put('/db/_security', { members: { roles: [] }, admins: { roles: ['_admin'] } })
    const nobody = { authorization: '' }
    const docs = [{ _id: '_design/d', ...broken }]
    assert.equal((await node.post('/db/_bulk_docs', { docs }, nobody)).json[0].error, 'unauthorized')
    assert.equal((await node.put('/db/_design/d', broken, nobody)).status, 401)
    const dryRun = '/db/_design/d/_view/v?dry_run=true'
    assert.equal((await node.post(dryRun, broken.views.v, nobody)).status, 401)
  })
})
