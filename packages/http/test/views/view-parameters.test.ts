import { expect } from 'chai'
import type { JsonObject } from '@sectional/core'
import { Query } from '../../src/request/query.ts'
import {
  viewParameters, viewQueryParameters, type QueriedView, type ViewParameters,
} from '../../src/views/view-parameters.ts'

const mapView: QueriedView = { hasReduce: false, isPartitioned: false, limitMax: Infinity }
const reduceView: QueriedView = { hasReduce: true, isPartitioned: false, limitMax: Infinity }

const defaults: ViewParameters = {
  keys: undefined, startKey: undefined, endKey: undefined, startDocument: undefined, endDocument: undefined,
  inclusiveEnd: true, descending: false, skip: 0, limit: null, includeDocs: false, conflicts: false, attachments: false,
  encodingInfo: false, updateSequence: false, sorted: true, groupLevel: null, update: true, stable: false,
  partition: undefined,
}

function ofGet(search: string, view = mapView): ViewParameters {
  return viewParameters(Query.parse(search), null, () => view)
}

function ofPost(body: JsonObject, search = '', view = mapView): ViewParameters {
  return viewParameters(Query.parse(search), body, () => view)
}

function ofQuery(member: unknown, search = '', view = mapView): ViewParameters {
  return viewQueryParameters(Query.parse(search), member, view)
}

function named(search: string, view = mapView): string {
  return `${search === '' ? 'nothing' : search}${view.hasReduce ? ' of a view with reduce' : ''}`
}

/** Expects an ApiError with that reason. */
function expectRefusal(read: () => unknown, reason: string, error = 'query_parse_error'): void {
  expect(read).to.throw().that.deep.includes({ status: 400, error, reason })
}

describe('parameters of a view query', () => {
  it('have defaults', () => {
    expect(ofGet('')).to.deep.equal(defaults)
    expect(ofPost({})).to.deep.equal(defaults)
    expect(ofQuery({})).to.deep.equal(defaults)
    expect(ofGet('', reduceView)).to.deep.equal({ ...defaults, groupLevel: 0 })
  })

  const accepted: readonly (
    readonly [search: string, body: JsonObject, expected: Partial<ViewParameters>, view?: QueriedView]
  )[] = [
    ['key="a"', { key: 'a' }, { startKey: 'a', endKey: 'a' }],
    ['key=%20null%20', { key: null }, { startKey: null, endKey: null }],
    ['startkey=[1]&endkey=[1,{}]', { startkey: [1], endkey: [1, {}] }, { startKey: [1], endKey: [1, {}] }],
    ['start_key=1&end_key=2', { start_key: 1, end_key: 2 }, { startKey: 1, endKey: 2 }],
    ['startkey_docid=a+b&endkey_docid=%22', { startkey_docid: 'a b', endkey_docid: '"' },
      { startDocument: 'a b', endDocument: '"' }],
    ['start_key_doc_id=a&end_key_doc_id=b', { start_key_doc_id: 'a', end_key_doc_id: 'b' },
      { startDocument: 'a', endDocument: 'b' }],
    ['keys=["b","a","b"]', { keys: ['b', 'a', 'b'] }, { keys: ['b', 'a', 'b'] }],
    ['keys=[]&startkey=1', { keys: [], startkey: 1 }, { keys: [] }],
    ['keys=[["x"]]', { keys: [['x']] }, { startKey: ['x'], endKey: ['x'] }],
    ['keys=["a"]&key="a"', { keys: ['a'], key: 'a' }, { startKey: 'a', endKey: 'a' }],
    ['inclusive_end=false', { inclusive_end: false }, { inclusiveEnd: false }],
    ['descending=TRUE', { descending: 'true' }, { descending: true }],
    ['skip=2&limit=0', { skip: 2, limit: 0 }, { skip: 2, limit: 0 }],
    ['include_docs=true&conflicts=true', { include_docs: true, conflicts: true },
      { includeDocs: true, conflicts: true }],
    ['attachments=true&att_encoding_info=true', { attachments: true, att_encoding_info: true },
      { attachments: true, encodingInfo: true }],
    ['update_seq=true&sorted=false', { update_seq: true, sorted: false }, { updateSequence: true, sorted: false }],
    ['update=false&stable=true', { update: false, stable: true }, { update: false, stable: true }],
    ['update=true&stable=false', { update: 'true', stable: 'false' }, {}],
    ['update=lazy', { update: 'lazy' }, { update: 'lazy' }],
    ['stale=ok', { stale: 'ok' }, { update: false, stable: true }],
    ['stale=update_after', { stale: 'update_after' }, { update: 'lazy', stable: true }],
    ['reduce=false&group=false&group_level=0', { reduce: false, group: false, group_level: 0 }, {}],
    ['_=1&LIMIT=2&nosuch=x&=y', { unknown: 1, other: { a: [] } }, {}],
    ['limit=1&limit=2', { limit: 2 }, { limit: 2 }],
    ['reduce=false&include_docs=true', { reduce: false, include_docs: true }, { includeDocs: true }, reduceView],
    ['reduce=true', { reduce: true }, { groupLevel: 0 }, reduceView],
    ['group=true', { group: true }, { groupLevel: 'exact' }, reduceView],
    ['group_level=2', { group_level: 2 }, { groupLevel: 2 }, reduceView],
    ['group=true&group_level=1', { group: true, group_level: 1 }, { groupLevel: 1 }, reduceView],
    ['group=false&group_level=0', { group: false, group_level: 0 }, { groupLevel: 0 }, reduceView],
    ['conflicts=true', { conflicts: true }, { conflicts: true, groupLevel: 0 }, reduceView],
    ['group=true&keys=["a","b"]', { group: true, keys: ['a', 'b'] }, { groupLevel: 'exact', keys: ['a', 'b'] },
      reduceView],
    ['keys=["a"]', { keys: ['a'] }, { groupLevel: 0, startKey: 'a', endKey: 'a' }, reduceView],
    ['keys=["a"]&key="b"', { keys: ['a'], key: 'b' }, { startKey: 'b', endKey: 'b' }],
    ['keys=["a"]&endkey="c"', { keys: ['a'], endkey: 'c' }, { startKey: 'a', endKey: 'c' }],
    ['key="b"&keys=["a"]', { key: 'b', keys: ['a'] }, { startKey: 'a', endKey: 'a' }],
    ['keys=["a","b"]&reduce=false', { keys: ['a', 'b'], reduce: false }, { keys: ['a', 'b'] }, reduceView],
    ['partition=p', { partition: 'p' }, { partition: 'p' }, { ...mapView, isPartitioned: true }],
    ['limit=7', { limit: 7 }, { limit: 7 }, { ...mapView, limitMax: 7 }],
    ['', {}, { limit: 7 }, { ...mapView, limitMax: 7 }],
  ]
  for (const [search, body, expected, view] of accepted) {
    it(`${named(search, view)}: in the URL, a body, and one of several queries`, () => {
      expect(ofGet(search, view)).to.deep.equal({ ...defaults, ...expected })
      expect(ofPost(body, '', view)).to.deep.equal({ ...defaults, ...expected })
      expect(ofQuery(body, '', view)).to.deep.equal({ ...defaults, ...expected })
    })
  }

  const refused: readonly [search: string, body: JsonObject | null, reason: string, view?: QueriedView][] = [
    ['limit=-1', null, 'Invalid value for positive integer: "-1"'],
    ['limit=ten', null, 'Invalid value for integer: "ten"'],
    ['limit=1.5', null, 'Invalid value for integer: "1.5"'],
    ['limit=', null, 'Invalid value for integer: ""'],
    ['skip=-1', null, 'Invalid value for positive integer: "-1"'],
    ['skip=x', null, 'Invalid value for integer: "x"'],
    ['group_level=-1', null, 'Invalid value for positive integer: "-1"', reduceView],
    ['group_level=all', null, 'Invalid value for integer: "all"', reduceView],
    ['limit=8', { limit: 8 }, 'Limit is too large, must not exceed 7', { ...mapView, limitMax: 7 }],
    ...[
      'descending', 'include_docs', 'conflicts', 'inclusive_end', 'update_seq', 'sorted', 'attachments',
      'att_encoding_info', 'reduce', 'group',
    ].map((name): [string, JsonObject, string] =>
      [`${name}=1`, { [name]: '1' }, 'Invalid boolean parameter: "1"']),
    ['stale=maybe', { stale: 1 }, 'Invalid value for `stale`.'],
    ['stale=true', { stale: true }, 'Invalid value for `stale`.'],
    ['update=LAZY', { update: 'x' }, 'Invalid value for `update`.'],
    ['stable=yes', { stable: 2 }, 'Invalid value for `stable`.'],
    ['stale=ok&update=true', { stale: 'ok', update: true }, '`stale` is incompatible with `stable` and `update`'],
    ['stale=ok&stable=true', { stale: 'ok', stable: true }, '`stale` is incompatible with `stable` and `update`'],
    ['reduce=true', { reduce: true }, 'Reduce is invalid for map-only views.'],
    ['group=true', { group: true }, 'Invalid use of grouping on a map view.'],
    ['group_level=1', { group_level: 1 }, 'Invalid use of grouping on a map view.'],
    ['reduce=false&group=true', { reduce: false, group: true }, 'Invalid use of grouping on a map view.', reduceView],
    ['group=false&group_level=1', { group: false, group_level: 1 },
      "Can't specify group=false and group_level>0 at the same time", reduceView],
    ['include_docs=true', { include_docs: true }, '`include_docs` is invalid for reduce', reduceView],
    ['keys=["a","b"]', { keys: ['a', 'b'] }, 'Multi-key fetches for reduce views must use `group=true`', reduceView],
    ['keys=["a","b"]&group_level=1', { keys: ['a', 'b'], group_level: 1 },
      'Multi-key fetches for reduce views must use `group=true`', reduceView],
    ['keys=["a","b"]&key="a"', { keys: ['a', 'b'], key: 'a' },
      '`keys` is incompatible with `key`, `start_key` and `end_key`'],
    ['keys=["a","b"]&startkey="a"', { keys: ['a', 'b'], startkey: 'a' },
      '`keys` is incompatible with `key`, `start_key` and `end_key`'],
    ['keys=["a","b"]&endkey="z"', { keys: ['a', 'b'], endkey: 'z' },
      '`keys` is incompatible with `key`, `start_key` and `end_key`'],
    ['keys="red"', null, '`keys` must be an array of strings.'],
    ['reduce=true&keys=["a","b"]&key="a"', { reduce: true, keys: ['a', 'b'], key: 'a' },
      'Reduce is invalid for map-only views.'],
    ['keys=["a","b"]&key="a"', { keys: ['a', 'b'], key: 'a' },
      'Multi-key fetches for reduce views must use `group=true`', reduceView],
    ['group=true&keys=["a","b"]&key="a"', { group: true, keys: ['a', 'b'], key: 'a' },
      '`keys` is incompatible with `key`, `start_key` and `end_key`'],
    ['group=false&group_level=1&keys=5', null, "Can't specify group=false and group_level>0 at the same time"],
    ['reduce=true&limit=8', { reduce: true, limit: 8 }, 'Limit is too large, must not exceed 7',
      { ...mapView, limitMax: 7 }],
    ['', null, '`partition` parameter is mandatory for queries to this view.', { ...mapView, isPartitioned: true }],
    ['partition=p', { partition: 'p' }, '`partition` parameter is not supported in this design doc'],
  ]
  for (const [search, body, reason, view] of refused) {
    it(`${named(search, view)}: is refused with "${reason}"`, () => {
      expectRefusal(() => ofGet(search, view), reason)
      if (body === null) return
      expectRefusal(() => ofPost(body, '', view), reason)
      expectRefusal(() => ofQuery(body, '', view), reason)
    })
  }

  it('are refused when they are no JSON', () => {
    for (const search of ['key=abc', 'startkey="abc', 'endkey=[1,', 'key=', 'keys=abc', 'startkey={"a"}']) {
      expectRefusal(() => ofGet(search), 'invalid UTF-8 JSON', 'bad_request')
    }
  })

  it('name documents by text', () => {
    expectRefusal(() => ofPost({ startkey_docid: 5 }), '`start_key_docid` must be a string.')
    expectRefusal(() => ofPost({ end_key_doc_id: null }), '`end_key_docid` must be a string.')
  })

  it('in a body must have numbers, no texts, and they must be in range', () => {
    for (const name of ['limit', 'skip', 'group_level']) {
      expectRefusal(() => ofPost({ [name]: '1' }), 'Invalid value for integer: "1"')
      expectRefusal(() => ofQuery({ [name]: null }), 'Invalid value for integer: null')
    }
    expectRefusal(() => ofPost({ limit: -5 }), 'Invalid value for positive integer: -5')
    expectRefusal(() => ofQuery({ skip: -1 }), 'Invalid value for positive integer: -1')
    expectRefusal(() => ofPost({ limit: 1.5 }), 'Invalid value for integer: 1.5')
  })

  it('of the URL override a body, except for keys; those of a query override the URL', () => {
    expect(ofPost({ limit: 1, keys: ['a', 'b'] }, 'limit=2&keys=["c","d"]'))
      .to.deep.equal({ ...defaults, limit: 2, keys: ['a', 'b'] })
    expect(ofQuery({ limit: 1 }, 'limit=2&skip=5')).to.deep.equal({ ...defaults, limit: 1, skip: 5 })
    expect(ofPost({ startkey: 'a' }, 'endkey="b"&inclusive_end=false'))
      .to.deep.equal({ ...defaults, startKey: 'a', endKey: 'b', inclusiveEnd: false })
  })

  it('of the URL that ask for groups or for several keys have no effect on several queries', () => {
    expect(ofQuery({}, 'group=true&group_level=2&keys=["a","b"]', reduceView))
      .to.deep.equal({ ...defaults, groupLevel: 0 })
    expect(ofQuery({ group: true }, 'group=false', reduceView)).to.deep.equal({ ...defaults, groupLevel: 'exact' })
    expect(ofQuery({}, 'keys=["a"]')).to.deep.equal({ ...defaults, startKey: 'a', endKey: 'a' })
  })

  it('of a body may not be several queries, nor keys that are no array', () => {
    const reason = 'The `queries` parameter is no longer supported at this endpoint'
    expectRefusal(() => ofPost({ queries: [] }), reason, 'bad_request')
    expectRefusal(() => ofPost({ queries: {} }), '`queries` member must be an array.', 'bad_request')
    expectRefusal(() => ofPost({ keys: 'a' }), '`keys` member must be an array.', 'bad_request')
    expectRefusal(() => ofPost({ limit: -1, keys: null }), '`keys` member must be an array.', 'bad_request')
    expectRefusal(() => ofQuery({ keys: 'a' }), '`keys` must be an array of strings.')
    expectRefusal(() => ofQuery('a'), '`queries` must be an array of objects.', 'bad_request')
  })

  it('name a partition, unless the path does', () => {
    const view = { ...mapView, isPartitioned: true }
    expect(ofGet('partition=p', { ...view, partition: 'q' }).partition).to.equal('q')
    expect(ofGet('', { ...view, partition: 'q' }).partition).to.equal('q')
    expectRefusal(() => ofGet('', { ...mapView, partition: 'q' }),
      '`partition` parameter is not supported in this design doc')
    for (const queried of [view, mapView]) {
      expectRefusal(() => ofGet('partition=_p', queried), 'Partition must not start with an underscore',
        'illegal_partition')
    }
  })
})
