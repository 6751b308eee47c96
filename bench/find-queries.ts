/**
 * Measures queries by selector on one node at 64 connections, in turns with a bare server that answers the same bytes:
 * `node bench/find-queries.ts [--rows 100000] [--seconds 3] [--rounds 3] [--query TEXT] [--port 5984]`, after a build
 * of the checkout. Documents have about 1 KB. `--query` measures only the kinds whose names contain the text, `--port`
 * is the first of two ports of the node, by default free ones.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Bench, measure, table, type Measured, type Row } from './comparison.ts'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { type MeasuredServer, runLoad, startBareProgram } from './measured-process.ts'
import { fill } from './view-builds.ts'
import { order } from './view-documents.ts'

const connections = 64
const warmUpSeconds = 6
const database = 'orders'

interface FindRequest {
  readonly what: string
  /** The body, as `LoadJob.body`. */
  readonly body: string
  readonly target: string
  readonly path?: string
}

const requests: readonly FindRequest[] = [
  { what: 'equality, one document', body: '{"selector":{"number":{number}}}', target: '0.2 or more' },
  {
    what: 'equality, covered', body: '{"selector":{"number":{number}},"fields":["_id","number"]}', target: 'reported',
  },
  {
    what: 'range of 25 with sort', target: 'reported',
    body: '{"selector":{"number":{"$gte":{number}}},"sort":["number"],"limit":25}',
  },
  {
    what: 'range of 25 with sort, of which half of the rows match', target: 'reported',
    body: '{"selector":{"number":{"$gte":{number}},"paid":true},"sort":["number"],"limit":25}',
  },
  { what: 'equality of the id', body: '{"selector":{"_id":"order-{padded}"}}', target: 'reported' },
]

function rate(
  server: MeasuredServer, path: string, body: string, rows: number, seconds: number,
): Promise<Measured> {
  return measure([server], async () => {
    const { requests: count, seconds: elapsed } = await runLoad({
      kind: 'post', path, body, ports: [server.port], connections, seconds, database: '', documents: rows,
      batch: 0, bodyBytes: 0, auth, tag: '', ids: 'ascending',
    })
    return { count, seconds: elapsed }
  })
}

async function measureQueries(bench: Bench, cluster: MeasuredCluster, rows: number): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'sectional-bench-find-'))
  const measured: Row[] = []
  try {
    for (const { what, body, target, path = `/${database}/_find` } of requests) {
      const middle = Math.floor(rows / 2)
      const sample = body.replaceAll('{number}', String(middle)).replaceAll('{padded}', String(middle).padStart(8, '0'))
      const file = join(scratch, 'answer.json')
      writeFileSync(file, await cluster.sendText('POST', path, sample, 200))
      const bare = await startBareProgram('bare-http-server.ts', ['0', file])
      try {
        measured.push(...await bench.compare({
          what: `${rows} documents: ${what}`, target,
          sectional: seconds => rate(cluster.nodes[0]!, path, body, rows, seconds),
          bare: seconds => rate(bare, path, body, rows, seconds),
        }))
      } finally {
        await bare.stop()
      }
    }
    return measured
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' }, seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' }, query: { type: 'string' }, port: { type: 'string' },
    folder: { type: 'string' },
  },
})
const rows = Number(flags.rows)
const port = flags.port === undefined ? undefined : Number(flags.port)
const cluster = await MeasuredCluster.start(1, flags.folder, undefined, port)
try {
  await fill(cluster, database, rows, order)
  const index = { index: { fields: ['number'] }, ddoc: 'numbers', name: 'numbers' }
  await cluster.send('POST', `/${database}/_index`, index, 200)
  // Meanwhile the node ends what it does after documents were stored, and its functions are compiled.
  await rate(cluster.nodes[0]!, `/${database}/_find`, requests[0]!.body, rows, warmUpSeconds)
  const bench = new Bench(Number(flags.seconds), Number(flags.rounds), flags.query)
  console.log(`\n${table(await measureQueries(bench, cluster, rows)).join('\n')}`)
} finally {
  await cluster.stop()
}
