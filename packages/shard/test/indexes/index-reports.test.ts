import { expect } from 'chai'
import { indexId, type IndexDefinition, ReplicaError } from '@sectional/core'
import { ManualClock, MemoryLog, MemoryStorage, PrometheusMetrics } from '@sectional/runtime'
import { ShardHost } from '../../src/index.ts'
import type { Indexer } from '../../src/index.ts'
import { IndexReports } from '../../src/indexes/index-reports.ts'
import { context, edit, shardA, shardRuntime } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'doc => emit(doc.a.b)', reduce: null, options: {} }
const other: IndexDefinition = { ...definition, map: `doc => emit('${'x'.repeat(1000)}')` }

describe('reports about indexes', () => {
  let clock: ManualClock
  let log: MemoryLog
  let metrics: PrometheusMetrics
  let reports: IndexReports
  beforeEach(() => {
    clock = new ManualClock()
    log = new MemoryLog()
    metrics = new PrometheusMetrics()
    reports = new IndexReports({ log, clock, metrics })
  })

  it('name a document with its error, at once and then once a minute with the number of all', async () => {
    const example = { id: 'a', error: 'TypeError: x (line 1, column 17)' }
    for (const count of [1, 20, 300]) reports.documentsFailed('s', definition, example, count)
    await clock.advance(60_000)
    reports.documentsFailed('s', definition, { ...example, id: 'b' }, 4000)
    const fields = { shard: 's', index: indexId(definition), map: definition.map, error: example.error }
    expect(log.lines.map(line => [line.level, line.fields])).to.deep.equal([
      ['warn', { ...fields, document: 'a', documents: 1 }], ['warn', { ...fields, document: 'b', documents: 4321 }],
    ])
  })

  it('are limited for each index and replica, and show the beginning of the function', () => {
    const example = { id: 'a', error: 'no' }
    for (let time = 0; time < 2; time++) {
      reports.documentsFailed('s', definition, example, 1)
      reports.documentsFailed('t', definition, example, 1)
      reports.documentsFailed('s', other, example, 1)
      reports.buildFailed('s', definition, new ReplicaError('storage', 'disk full'))
    }
    expect(log.lines.map(({ fields: { shard, map } }) => [shard, (map as string).length])).to.deep.equal([
      ['s', definition.map.length], ['t', definition.map.length], ['s', 200], ['s', definition.map.length],
    ])
  })

  it('count the builds that failed, and not those that were ended', async () => {
    for (const code of ['exhausted', 'closed', 'cancelled', 'not_hosted', 'exhausted'] as const) {
      reports.buildFailed('s', definition, new ReplicaError(code, 'why'))
    }
    expect(log.lines.map(({ fields }) => fields)).to.deep.equal([
      { shard: 's', index: indexId(definition), map: definition.map, code: 'exhausted', error: 'why', builds: 1 },
    ])
    const metered = await metrics.render()
    expect(metered).to.contain('sectional_index_builds_failed_total{reason="exhausted"} 2')
    for (const code of ['closed', 'cancelled', 'not_hosted']) expect(metered).not.to.contain(code)
  })

  it('come from the builds of a host', async () => {
    const failure = new ReplicaError('exhausted', 'too slow')
    const indexer: Indexer = {
      versionOf: () => '1',
      map: async ({ map }, documents) => {
        if (map === other.map) throw failure
        return documents.map(({ id }) => ({ error: `${id} is wrong` }))
      },
      groupOf: key => key, reduce: async () => [], rereduce: async () => [], encodeGroup: (_d, _r, _l, value) => value,
    }
    const runtime = { ...shardRuntime(new MemoryStorage(), clock), log }
    const host = await ShardHost.open(runtime, { indexerOf: () => indexer })
    const engine = await host.create(shardA)
    await engine.updateDocuments({ edits: ['a', 'b'].map(id => edit(id, null, {})), revsLimit: 10 }, context)
    const indexes = await host.indexes(shardA, true)
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 5000 }, context)
    const failed = await indexes.buildIndex({ definition: other, through: 'newest', waitMs: 5000 }, context)
      .catch((error: unknown) => error)
    expect(failed).to.equal(failure)
    await host.close()
    const reported = log.lines.filter(({ fields }) => 'index' in fields)
    expect(reported.map(({ fields: { document, documents, error, code } }) => [document, documents, error, code]))
      .to.deep.equal([['a', 2, 'a is wrong', undefined], [undefined, undefined, 'too slow', 'exhausted']])
  })
})
