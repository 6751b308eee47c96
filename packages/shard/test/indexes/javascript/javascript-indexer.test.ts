import assert from 'node:assert/strict'
import { type ChangeRow, decodeViewRow, type IndexDefinition, partitionPrefix, SortKeyEncoder } from '@sectional/core'
import {
  type JsonText, ManualClock, type MapOutcome, MemorySandbox, RealClock, SandboxError, type SandboxFunction, Turns,
} from '@sectional/runtime'
import { JavaScriptIndexer } from '../../../src/indexes/javascript/javascript-indexer.ts'
import { JavaScriptWorld, viewOf } from './javascript-world.ts'

class FailingSandbox extends MemorySandbox {
  override async map(called: SandboxFunction, documents: readonly JsonText[]): Promise<readonly MapOutcome[]> {
    if (documents.some(text => String(text).includes('"bad'))) throw new SandboxError('memory', 'too much')
    return super.map(called, documents)
  }
}

/** Keeps the documents that map functions receive. */
class RecordingSandbox extends MemorySandbox {
  readonly documents: unknown[] = []

  override async map(called: SandboxFunction, documents: readonly JsonText[]): Promise<readonly MapOutcome[]> {
    this.documents.push(...documents.map(text => JSON.parse(String(text)) as unknown))
    return super.map(called, documents)
  }
}

const clock = new RealClock()

describe('the indexer of functions in JavaScript', () => {
  let world: JavaScriptWorld

  beforeEach(async () => { world = await JavaScriptWorld.open() })
  afterEach(() => world.close())

  it('lists the emitted rows in the order of the root collation', async () => {
    await world.write({ 1: { n: 'b' }, 2: { n: 'B' }, 3: { n: 'a' }, 4: { n: [1] }, 5: { n: null }, 6: { n: 2 } })
    assert.deepEqual((await world.rows(viewOf('doc => emit(doc.n, doc._id)'))).map(([, key]) => key),
      [null, 2, 'a', 'b', 'B', [1]])
    assert.deepEqual((await world.rows(viewOf('doc => emit(doc.n)', null, { collation: 'raw' }))).map(([, key]) => key),
      [2, null, [1], 'B', 'a', 'b'])
  })

  it('orders the rows of a document with equal keys by their values', async () => {
    await world.write({ d: {} })
    const values = [30, 'pear', 4, null, 'apple', [1], { a: 1 }, true, false]
    const map = `doc => { for (const v of ${JSON.stringify(values)}) emit("k", v); emit("a", 9) }`
    assert.deepEqual((await world.rows(viewOf(map))).map(([, key, value]) => [key, value]), [
      ['a', 9], ...[4, 30, false, null, true, { a: 1 }, [1], 'apple', 'pear'].map(value => ['k', value]),
    ])
  })

  it('leaves out documents on which the map function fails, and names them', async () => {
    await world.write({ good: { n: { v: 1 } }, bad: {}, worse: { thrown: true } })
    const view = viewOf('doc => {\n  if (doc.thrown) throw { code: 1 }\n  emit(doc.n.v, null)\n}')
    assert.deepEqual(await world.rows(view), [['good', 1, null]])
    const { failures, failedCount } = await world.info(view)
    assert.equal(failedCount, 2)
    assert.match(failures.find(({ id }) => id === 'bad')!.error, /TypeError.*\(line 3, column \d+\)$/)
    assert.equal(failures.find(({ id }) => id === 'worse')!.error, 'The map function threw {"code":1}')
  })

  it('ends the build when the map function throws a fatal error, and goes on when the document is gone', async () => {
    const cases = ([
      [['fatal', 'my_error', 'because: x'], 'my_error: because: x'],
      [['fatal', 'my_error', { a: 1 }], 'my_error: {"a":1}'],
      [['fatal'], 'map_runtime_error: function raised a fatal error'],
      ['fatal_error', "map_runtime_error: function raised 'fatal_error'"],
    ] as const).map(([thrown, message]) => ({
      message, view: viewOf(`doc => { if (doc.bad) throw ${JSON.stringify(thrown)}; emit(doc._id) }`),
    }))
    await world.write({ a: {} })
    for (const { view } of cases) assert.equal((await world.rows(view)).length, 1)
    await world.write({ b: {}, bad: { bad: true } })
    for (const { view, message } of cases) {
      const before = await world.info(view)
      for (let attempt = 0; attempt < 2; attempt++) {
        await assert.rejects(world.build(view), { code: 'aborted', message })
      }
      assert.deepEqual(await world.info(view), before)
      assert.deepEqual([before.rowCount, before.failedCount, before.position.sequence], [1, 0, 1])
    }
    await world.remove('bad')
    for (const { view } of cases) {
      assert.deepEqual((await world.rows(view)).map(([id]) => id), ['a', 'b'])
    }
  })

  it('sends a map function the members that it reads by their names', async () => {
    await world.close()
    const sandbox = new RecordingSandbox()
    world = await JavaScriptWorld.open(sandbox)
    const first = [1, { last: '}"' }]
    await world.write({ d: { first, n: 'a', other: { last: 2 }, last: 7 }, e: { n: 'b' } })
    const rows = await world.rows(viewOf('function (doc) { emit(doc.last, doc.first) }'))
    assert.deepEqual(rows, [['e', null, null], ['d', 7, first]])
    const received = sandbox.documents as readonly Record<string, unknown>[]
    assert.deepEqual(received.map(({ _rev, ...others }) => others), [{ _id: 'd', first, last: 7 }, { _id: 'e' }])
    assert.deepEqual(await world.rows(viewOf('doc => { emit(doc._id, Object.keys(doc)) }')), [
      ['d', 'd', ['_id', '_rev', 'first', 'n', 'other', 'last']], ['e', 'e', ['_id', '_rev', 'n']],
    ])
  })

  describe('with documents on which the map function exceeds its limits', () => {
    beforeEach(async () => {
      await world.close()
      world = await JavaScriptWorld.open(new FailingSandbox())
    })
    const view = viewOf('doc => emit(doc._id)')

    it('ends the build behind ten of them, and the next one goes on there', async () => {
      const ids = Array.from({ length: 15 }, (_, at) => `bad${at}`)
      await world.write(Object.fromEntries(['a', ...ids, 'b'].map(id => [id, {}])))
      await assert.rejects(world.build(view), {
        code: 'exhausted', message: 'The function exceeded its limits for 10 documents: too much',
      })
      const { failedCount, rowCount, failures } = await world.info(view)
      assert.deepEqual([failedCount, rowCount], [10, 1])
      assert.equal(failures[0]!.error, 'too much')
      assert.deepEqual((await world.rows(view)).map(([id]) => id), ['a', 'b'])
      assert.equal((await world.info(view)).failedCount, 15)
    })

    it('goes on when there are others between them, but ends behind a hundred', async () => {
      const numbers = Array.from({ length: 230 }, (_, at) => at)
      await world.write(Object.fromEntries(numbers.map(n => [`${n % 2 === 0 ? 'bad' : 'good'}${n}`, {}])))
      await assert.rejects(world.build(view), { message: /exceeded its limits for 10\d documents/ })
      assert.equal((await world.rows(view)).length, 115)
      assert.equal((await world.info(view)).failedCount, 115)
    })

    it('counts them across the calls of the function, which has few large documents', async () => {
      const text = 'x'.repeat(300_000)
      await world.write(Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`bad${at}`, { text }])))
      await assert.rejects(world.build(view), { code: 'exhausted' })
      await world.build(view)
      assert.equal((await world.info(view)).failedCount, 12)
    })
  })

  it('ends the build when the source of the map function is not a function', async () => {
    await world.write({ d: {} })
    await assert.rejects(world.build(viewOf('function (doc) {\n  emit(doc.a;\n}')), {
      code: 'compilation', message: /missing \) after argument.*\(line 2, column 12\)$/,
    })
  })

  it('orders keys by the names of their members, whatever was parsed before', async () => {
    // V8 takes a name with an escape for that of the same place in an earlier text (nodejs/node issue 63785).
    JSON.parse('{"n":0,"\\\\":0}')
    const parts = { sandbox: new MemorySandbox(), database: 'd', turns: new Turns(clock), clock }
    const document = {
      sequence: 1, id: 'd', leaves: [{ revision: '1-a', deleted: false }], body: Buffer.from('{}'),
    }
    const [mapped] = await new JavaScriptIndexer(parts).map(
      viewOf('doc => emit({ n: 0, "\\n": 2 }, null)'), [document], new AbortController().signal)
    assert(mapped?.error === undefined)
    assert.deepEqual(mapped?.rows.map(({ key }) => key), [new SortKeyEncoder('root').encode({ n: 0, '\n': 2 })])
  })

  it('leaves out a document whose key has no sort key', async () => {
    await world.write({ short: { n: 1 }, long: { n: 2 ** 20 } })
    const view = viewOf('doc => emit("x".repeat(doc.n), null)')
    assert.deepEqual((await world.rows(view)).map(([id]) => id), ['short'])
    assert.match((await world.info(view)).failures[0]!.error, /^A row cannot be indexed: The sort key/)
  })

  it('leaves out a document with more rows than the limit, which the error names', async () => {
    await world.write({ few: { n: 20_000 }, many: { n: 20_001 } })
    const view = viewOf('doc => { for (let n = 0; n < doc.n; n++) emit(n, null) }')
    await world.build(view)
    const { rowCount, failures } = await world.info(view)
    assert.equal(rowCount, 20_000)
    const error = 'The map function emitted 20001 rows; the limit is 20000'
    assert.deepEqual(failures, [{ id: 'many', error }])
  }).timeout(20_000)

  it('leaves out a document with more bytes of sort keys than the limit, which the error names', async () => {
    await world.write({ few: { n: 4 }, many: { n: 5 } })
    const view = viewOf('doc => { const key = new Array(110_000).fill(1); for (let n = 0; n < doc.n; n++) emit(key) }')
    await world.build(view)
    const { rowCount, failures } = await world.info(view)
    assert.equal(rowCount, 4)
    const error = 'A row cannot be indexed: the sort keys of the document have more than 4194304 bytes'
    assert.deepEqual(failures, [{ id: 'many', error }])
  }).timeout(20_000)

  it('calls functions again that the sandbox refuses as overloaded, for half a minute or until it ends', async () => {
    const manual = new ManualClock()
    const document = {
      sequence: 1, id: 'd', leaves: [{ revision: '1-a', deleted: false }], body: Buffer.from('{}'),
    }
    for (const [refusals, outcome] of [[20, 1], [1000, 'overloaded'], [10, 'overloaded']] as const) {
      const ended = new AbortController()
      let left: number = refusals
      const sandbox = new MemorySandbox()
      const { map } = sandbox
      sandbox.map = (...given) => {
        if (outcome === 'overloaded' && left === 1) ended.abort()
        return left-- > 0 ? Promise.reject(new SandboxError('overloaded', 'too many')) : map.apply(sandbox, given)
      }
      const indexer = new JavaScriptIndexer({ sandbox, database: 'd', turns: new Turns(clock), clock: manual })
      let isOver = false
      const mapped = indexer.map(viewOf('doc => emit(1)'), [document], ended.signal)
        .then(({ length }) => length, ({ code }: { code: string }) => code).finally(() => { isOver = true })
      while (!isOver) {
        await manual.advance(500)
        await new Promise(setImmediate)
      }
      assert.equal(await mapped, outcome)
    }
    assert(manual.monotonic() < 60_000)
  })

  it('maps only as many documents by one call as fit into memory with their rows', async () => {
    const ids = Array.from({ length: 12 }, (_, at) => `d${String(at).padStart(2, '0')}`)
    const text = 'x'.repeat(1_100_000)
    const documents = ids.map((id, at): ChangeRow => ({
      sequence: at + 1, id, leaves: [{ revision: '1-a', deleted: false }], body: Buffer.from(JSON.stringify({ text })),
    }))
    const view = viewOf('doc => { for (const n of [1, 2]) emit(n, doc._id + doc.text.slice(0, 600_000)) }')
    const parts = { sandbox: new MemorySandbox(), database: 'd', turns: new Turns(clock), clock }
    const mapped = await new JavaScriptIndexer(parts).map(view, documents, new AbortController().signal)
    assert.equal(mapped.length, 4)

    await world.write(Object.fromEntries(ids.map(id => [id, { text }])))
    const listed = async (): Promise<unknown> => (await world.rows(view)).map(([id, key, value]) => [
      id, key, (value as string).slice(0, 4),
    ])
    assert.deepEqual(await listed(), [1, 2].flatMap(key => ids.map(id => [id, key, `${id}x`])))
    for (const id of ids.slice(1)) await world.remove(id)
    assert.deepEqual(await listed(), [1, 2].map(key => ['d00', key, 'd00x']))
  }).timeout(20_000)

  it('maps design documents only with that option', async () => {
    await world.write({ d: {}, '_design/x': {} })
    const map = 'doc => emit(doc._id, null)'
    assert.deepEqual((await world.rows(viewOf(map))).map(([id]) => id), ['d'])
    const withDesign = await world.rows(viewOf(map, null, { include_design: true }))
    assert.deepEqual(withDesign.map(([id]) => id), ['_design/x', 'd'])
  })

  it('lets map functions require the modules of views.lib', async () => {
    await world.write({ d: { n: 2 } })
    const lib = JSON.stringify({ twice: 'exports.of = n => 2 * n' })
    const view = viewOf('doc => emit(require("views/lib/twice").of(doc.n), null)', null, { lib })
    assert.deepEqual(await world.rows(view), [['d', 4, null]])
  })

  describe('shows map functions', () => {
    const indexer = new JavaScriptIndexer({
      sandbox: new MemorySandbox(), database: 'db', turns: new Turns(clock), clock,
    })
    const row: ChangeRow = {
      sequence: 7, id: 'd', body: Buffer.from('{"a":1}'), leaves: [{ revision: '2-b', deleted: false }],
    }

    async function seen(changes: Partial<ChangeRow>, options: IndexDefinition['options'] = {}): Promise<unknown> {
      const [mapped] = await indexer.map(viewOf('doc => emit(doc, null)', null, options), [{ ...row, ...changes }],
        new AbortController().signal)
      assert(mapped?.error === undefined)
      return JSON.parse(decodeViewRow(mapped!.rows[0]!.value).key)
    }

    it('the id, the revision and the members of a document', async () => {
      assert.deepEqual(await seen({}), { _id: 'd', _rev: '2-b', a: 1 })
      assert.deepEqual(await seen({ body: Buffer.from('{}') }), { _id: 'd', _rev: '2-b' })
    })

    it('the sequence only with the option local_seq', async () => {
      assert.deepEqual(await seen({}, { local_seq: true }), { _id: 'd', _rev: '2-b', a: 1, _local_seq: 7 })
    })

    it('its conflicts', async () => {
      const leaves = [row.leaves[0]!, { revision: '2-a', deleted: false }, { revision: '3-c', deleted: true }]
      assert.deepEqual(await seen({ leaves }), {
        _id: 'd', _rev: '2-b', a: 1, _conflicts: ['2-a'], _deleted_conflicts: ['3-c'],
      })
    })

    it('stubs of its attachments', async () => {
      const record = { name: '__proto__', contentType: 'text/plain', revpos: 1, digest: 'x==', blob: 'aa', length: 3 }
      const attachments = [{ ...record, encoding: 'identity', storedLength: 3 } as const]
      const { _attachments: stubs } = await seen({ attachments }) as { _attachments: object }
      assert.deepEqual(Object.entries(stubs), [
        ['__proto__', { content_type: 'text/plain', revpos: 1, digest: 'md5-x==', length: 3, stub: true }],
      ])
    })
  })

  it('refuses rows and values of hostile functions that are not JSON', async () => {
    const trusted = new MemorySandbox()
    const hostile = await JavaScriptWorld.open({
      compile: called => trusted.compile(called),
      map: async (called, documents) => (await trusted.map(called, documents)).map(outcome => outcome.kind === 'rows'
        ? { kind: 'rows', rows: outcome.rows.map(row => ({ ...row, ...JSON.parse(row.value) as object })) } : outcome),
      call: async (_called, lists) => lists.map(() => ({ kind: 'value', json: '"open' })),
      filter: (called, request, documents) => trusted.filter(called, request, documents),
      respond: (called, given) => trusted.respond(called, given),
    })
    await hostile.write({ a: { key: '1] ' }, b: { value: '1,2' }, c: { key: '1e400' }, d: { value: '' }, e: {} })
    const view = viewOf('doc => { const { _id, _rev, ...row } = doc; emit(_id, row) }', '() => 1')
    assert.deepEqual(await hostile.rows(view), [['e', 'e', {}]])
    assert.deepEqual(await hostile.groups(view),
      [[null, { error: 'reduce_error', reason: 'The reduce function returned no JSON' }]])
    assert.equal((await hostile.info(view)).failedCount, 4)
    await hostile.close()
  })

  it('orders a partitioned index by partition, and groups its rows within partitions', async () => {
    await world.write({ 'b:1': { k: [1, 2] }, 'a:1': { k: [2, 1] }, 'a:2': { k: [1, 3] }, 'a:3': { k: [1, 4] } })
    await world.write({ '_design/x': { k: [0] } })
    for (const collation of ['root', 'raw']) {
      const view = viewOf('doc => emit(doc.k, 1)', '_sum', { partitioned: true, include_design: true, collation })
      assert.deepEqual((await world.rows(view)).map(([id]) => id), ['a:2', 'a:3', 'a:1', 'b:1'])
      assert.deepEqual(await world.groups(view, 1), [[[1], 2], [[2], 1], [[1], 1]])
      const partition = { lower: { key: partitionPrefix('a'), inclusive: true } }
      const upper = { key: partitionPrefix('b'), inclusive: false }
      assert.deepEqual(await world.groups(view, 0, { ...partition, upper }), [[null, 3]])
    }
  })
})
