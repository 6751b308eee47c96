import assert from 'node:assert/strict'
import { ApiError, indexId, viewDefinition, viewDefinitions, type JsonObject } from '@sectional/core'

const plain = { partitioned: false }
const partitioned = { partitioned: true }
const map = 'doc => { emit(doc.name) }'
const other = 'doc => { emit(doc.age) }'

function idOf(designDocument: JsonObject, view = 'v', database = plain): string {
  return indexId(viewDefinition(designDocument, view, database))
}

function refused(designDocument: JsonObject, view: string): string {
  try {
    viewDefinition(designDocument, view, plain)
  } catch (error) {
    assert(error instanceof ApiError)
    return `${error.status} ${error.error}: ${error.reason}`
  }
  return 'accepted'
}

describe('the definition of a view', () => {
  it('has the functions, and no options unless the design document sets some', () => {
    assert.deepEqual(viewDefinition({ views: { v: { map } } }, 'v', plain),
      { kind: 'javascript', map, reduce: null, options: {} })
    assert.deepEqual(viewDefinition({ language: 'javascript', views: { v: { map, reduce: '_sum' } } }, 'v', plain),
      { kind: 'javascript', map, reduce: '_sum', options: {} })
  })

  it('is the same for views with equal functions, whatever else their design documents contain', () => {
    const one = idOf({ _id: '_design/a', views: { v: { map, reduce: '_count' }, w: { map: other } } })
    assert.equal(idOf({ _id: '_design/b', views: { x: { reduce: '_count', map } }, filters: { f: '...' } }, 'x'), one)
    assert.equal(idOf({
      views: { v: { map, reduce: '_count', options: {} } },
      options: { collation: 'root', local_seq: false, include_design: false, partitioned: true },
    }), one)
    assert.notEqual(idOf({ views: { v: { map: other, reduce: '_count' } } }), one)
    assert.notEqual(idOf({ views: { v: { map, reduce: '_sum' } } }), one)
    assert.notEqual(idOf({ views: { v: { map } } }), one)
  })

  it('has the options on which the rows depend', () => {
    const options = { collation: 'raw', local_seq: true, include_design: true }
    assert.deepEqual(viewDefinition({ views: { v: { map } }, options }, 'v', plain).options, options)
    assert.deepEqual(viewDefinition({ views: { v: { map, options: { collation: 'raw' } } } }, 'v', plain).options,
      { collation: 'raw' })
  })

  it('has the modules of the library', () => {
    const lib = { names: 'exports.first = 1', deep: { last: 'exports.last = 2' } }
    assert.deepEqual(viewDefinition({ views: { v: { map }, lib } }, 'v', plain).options, { lib: JSON.stringify(lib) })
    assert.notEqual(idOf({ views: { v: { map }, lib } }), idOf({ views: { v: { map }, lib: { names: 'other' } } }))
  })

  it('is ordered by partition in a partitioned database, unless the design document says otherwise', () => {
    const views = { v: { map } }
    assert.deepEqual(viewDefinition({ views }, 'v', partitioned).options, { partitioned: true })
    assert.deepEqual(viewDefinition({ views, options: { partitioned: false } }, 'v', partitioned).options, {})
    assert.deepEqual(viewDefinition({ views, options: { partitioned: false } }, 'v', plain).options, {})
  })

  it('is refused for views that do not exist or have no map function', () => {
    const missing = '404 not_found: missing_named_view'
    assert.equal(refused({ views: { v: { map } } }, 'w'), missing)
    assert.equal(refused({ views: { v: { map } } }, 'constructor'), missing)
    assert.equal(refused({ views: { v: { map } } }, '__proto__'), missing)
    assert.equal(refused({ views: { lib: { map } } }, 'lib'), missing)
    assert.equal(refused({ views: { v: { reduce: '_count' } } }, 'v'), missing)
    assert.equal(refused({ views: { v: null } }, 'v'), missing)
    assert.equal(refused({ views: [] as unknown as JsonObject }, 'v'), missing)
    assert.equal(refused({}, 'v'), missing)
  })

  it('is refused for functions that cannot be run', () => {
    assert.equal(refused({ language: 'cobol', views: { v: { map } } }, 'v'), '500 unknown_query_language: cobol')
    assert.equal(refused({ views: { v: { map, reduce: '_median' } } }, 'v'),
      '400 invalid_design_doc: `_median` is not a supported reduce function.')
  })
})

describe('the definitions of a design document', () => {
  it('are those of its views, without what is not a view and without views that cannot be run', () => {
    const views = { a: { map }, b: { map: other, reduce: '_count' }, c: { map, reduce: '_median' }, lib: { map }, d: 1 }
    assert.deepEqual([...viewDefinitions({ views }, plain)], [
      ['a', { kind: 'javascript', map, reduce: null, options: { lib: '{"map":"doc => { emit(doc.name) }"}' } }],
      ['b', { kind: 'javascript', map: other, reduce: '_count',
        options: { lib: '{"map":"doc => { emit(doc.name) }"}' } }],
    ])
    assert.equal(viewDefinitions({ views, language: 'query' }, plain).size, 0)
    assert.equal(viewDefinitions({}, plain).size, 0)
  })
})
