import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

const saved = 'function (doc) {\n  log(doc.name.first);\n  emit(doc.age, doc.name.first)\n}'
const sum = 'function (keys, values, rereduce) { return values.reduce(function (a, b) { return a + b }, 0) }'
/** Counts wrongly: the reductions of the halves are counted, not added. */
const count = 'function (keys, values) { return values.length }'

for (const nodes of [1, 3]) {
  describe(`a dry run of a view on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`, () => {
    let cluster: MemoryCluster
    const numbers = Array.from({ length: nodes }, (_, at) => at + 1)

    before(async () => {
      cluster = new MemoryCluster(nodes)
      for (const number of numbers) await cluster.start(number)
      await cluster.ready()
      await send('PUT', '/db?q=4')
      await send('PUT', '/db/_design/people', { views: { age: { map: saved, reduce: '_count' } } })
      const docs = [
        { _id: 'ada', age: 36, name: { first: 'Ada' } }, { _id: 'bob', age: 7, name: { first: 'Bob' } },
        { _id: 'cy' }, { _id: 'gone', _deleted: true }, { _id: 'eve', age: [1], name: { first: 'Eve' } },
      ]
      expect((await send('POST', '/db/_bulk_docs', { docs })).status).to.equal(201)
    })
    after(() => cluster.close())

    const send = (method: string, target: string, json?: unknown) => cluster.send(nodes, method, target, json)
    const dryRun = (json: object, view = 'people/_view/age') =>
      send('POST', `/db/_design/${view}?dry_run=true`, json)

    it('runs the saved view over the documents', async () => {
      const { status, body } = await dryRun({})
      const { timing, log, ...rest } = body
      expect([status, rest]).to.deep.equal([200, {
        documents: 4, total_rows: 3,
        rows: [
          { id: 'bob', key: 7, value: 'Bob' }, { id: 'ada', key: 36, value: 'Ada' },
          { id: 'eve', key: [1], value: 'Eve' },
        ],
        reduced: { value: 3, rereduced: 3 },
        failed: 1,
        errors: [{
          id: 'cy', error: 'TypeError: Cannot read properties of undefined (reading \'first\')', line: 2, column: 16,
        }],
      }])
      expect(log).to.deep.equal(['ada', 'bob', 'eve'].map(id =>
        ({ id, line: `${id[0]!.toUpperCase()}${id.slice(1)}` })))
      expect([timing.map_ms >= 0, timing.reduce_ms >= 0]).to.deep.equal([true, true])
    })

    it('builds no index and saves nothing', async () => {
      await dryRun({ map: saved, reduce: '_count' }, 'new/_view/v')
      expect((await send('GET', '/db/_design/new')).status).to.equal(404)
      for (const number of numbers) {
        expect(cluster.disk(number).openStores.filter(name => name.includes('index'))).to.deep.equal([])
      }
    })

    it('runs a definition of the body, with options and modules', async () => {
      const map = 'doc => { const { value } = require("views/lib/a"); emit(doc._local_seq > 0, value) }'
      const { status, body } = await dryRun({
        map, reduce: count, options: { local_seq: true, include_design: true }, lib: { a: 'exports.value = 5' },
      }, 'new/_view/v')
      expect([status, body.documents, body.total_rows, body.failed]).to.deep.equal([200, 5, 5, 0])
      expect(body.rows[0]).to.deep.equal({ id: '_design/people', key: true, value: 5 })
      expect(body.reduced).to.deep.equal({ value: 5, rereduced: 2 })
    })

    it('shows why a reduction fails', async () => {
      const map = 'doc => emit(null, doc._id)'
      const failing = await dryRun({ map, reduce: '() => { throw new Error("no") }' })
      expect(failing.body.reduced.value).to.deep.equal(
        { error: 'reduce_error', reason: 'Error: no (line 1, column 15)' })
      const statistics = await dryRun({ map, reduce: '_stats' })
      expect(statistics.body.reduced.value.error).to.equal('invalid_value')
      expect((await dryRun({ map, reduce: sum, ids: ['cy'] })).body.reduced).to.deep.equal(
        { value: '0cy', rereduced: '0cy' })
    })

    it('takes the documents that the request names, or so many of the newest ones', async () => {
      const map = 'doc => emit(null)'
      const idsOf = ({ body }: Awaited<ReturnType<typeof dryRun>>): string[] =>
        body.rows.map(({ id }: { readonly id: string }) => id)
      expect(idsOf(await dryRun({ map, ids: ['eve', 'none', 'gone', 'ada', 'eve'] }))).to.deep.equal(['ada', 'eve'])
      for (const sample of [1, 2, 3]) expect(idsOf(await dryRun({ map, sample }))).to.have.length(sample)
      await send('PUT', '/db/newest', {})
      expect(idsOf(await dryRun({ map, sample: 5 }))).to.include('newest')
      const { body: { _rev } } = await send('GET', '/db/newest')
      expect((await send('DELETE', `/db/newest?rev=${_rev}`)).status).to.equal(200)
    })

    it('takes other documents when the newest changes are deletions and design documents', async () => {
      const docs = Array.from({ length: 30 }, (_, at) =>
        at % 2 === 0 ? { _id: `_design/d${at}` } : { _id: `gone${at}`, _deleted: true })
      expect((await send('POST', '/db/_bulk_docs', { docs })).status).to.equal(201)
      const map = 'doc => emit(null)'
      for (const [sample, documents] of [[1, 1], [2, 2], [100, 4]] as const) {
        expect((await dryRun({ map, sample })).body.documents).to.equal(documents)
      }
      const all = await dryRun({ map, sample: 100, options: { include_design: true } })
      expect(all.body.documents).to.equal(4 + 1 + 15)
    })

    it('refuses what cannot run', async () => {
      const syntax = await dryRun({ map: 'doc => {\n  emit( }' })
      expect([syntax.status, syntax.body]).to.deep.equal([400, {
        error: 'compilation_error',
        reason: 'Compilation of the map function in the \'age\' view failed: Unexpected token \'}\' (line 2, column 9)',
      }])
      const refused: readonly (readonly [object, number, RegExp])[] = [
        [{ sample: 0 }, 400, /`sample` must be an integer from 1 to 1000/], [{ sample: 1.5 }, 400, /`sample`/],
        [{ ids: 'a' }, 400, /`ids` must be an array/], [{ ids: ['ada', 5] }, 400, /`ids` must be/],
        [{ ids: Array(1001).fill('a') }, 400, /at most 1000/],
        [{ reduce: '_sum' }, 400, /`reduce` needs `map`/], [{ map: 7 }, 400, /must have string type/],
        [{ map: 'doc => {}', reduce: '_none' }, 400, /`_none` is not a supported reduce function/],
      ]
      for (const [json, status, reason] of refused) {
        const { status: got, body } = await dryRun(json)
        expect(got).to.equal(status)
        expect(body.reason).to.match(reason)
      }
      expect((await dryRun({}, 'people/_view/none')).status).to.equal(404)
      expect((await send('GET', '/db/_design/people/_view/age?dry_run=true')).status).to.equal(400)
    })

    it('runs over a whole database, and one view at a time', async () => {
      await send('PUT', '/parts?partitioned=true')
      const body = { map: 'doc => {}', queries: [] }
      const inPartition = '`dry_run` needs the path of a view without a partition'
      for (const [path, reason] of [
        ['/db/_design/people/_view/age/queries?', '`dry_run` is not possible with `queries`'],
        ['/parts/_partition/p/_design/d/_view/v?', inPartition], ['/parts/_design/d/_view/v?partition=p&', inPartition],
        ['/parts/_partition/p/_design/d/_view/v/queries?', '`dry_run` is not possible with `queries`'],
      ] as const) {
        const answer = await send('POST', `${path}dry_run=true`, body)
        expect([answer.status, answer.body], path).to.deep.equal([400, { error: 'bad_request', reason }])
      }
    })
  })
}
