/** Measures queries of views at 64 connections, compared with a bare server that answers the same bytes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bench, measure, type Measured, type Row } from './comparison.ts'
import { auth, type MeasuredCluster } from './measured-cluster.ts'
import { type MeasuredServer, runLoad, startBareProgram } from './measured-process.ts'
import { groupCount } from './view-documents.ts'

const connections = 64

interface ViewRequest {
  readonly what: string
  /** As `LoadJob.path`. */
  readonly query: string
  readonly target: string
}

/** Random groups and numbers make nearly all requests of a kind different, where they have any. */
const requests: readonly ViewRequest[] = [
  { what: 'key lookup', query: 'reduce=false&key=["group%20{group}",{number}]', target: '0.3 or more' },
  {
    what: 'range of 100 rows', query: 'reduce=false&startkey=["group%20{group}",{number}]&limit=100',
    target: 'reported',
  },
  { what: `\`group_level=1\`, ${groupCount} groups`, query: 'group_level=1', target: '0.1 or more' },
  {
    what: '`group_level=1` from a random key', query: 'group_level=1&startkey=["group%20{group}",{number}]',
    target: 'reported',
  },
  { what: 'full `_count`', query: '', target: '0.3 or more' },
]

function rate(
  server: MeasuredServer, path: string, rows: number, seconds: number,
): Promise<Measured> {
  return measure([server], async () => {
    const { requests: count, seconds: elapsed } = await runLoad({
      kind: 'path', path, groups: groupCount, ports: [server.port], connections, seconds, database: '', documents: rows,
      batch: 0, bodyBytes: 0, auth, tag: '', ids: 'ascending',
    })
    return { count, seconds: elapsed }
  })
}

/** @param database has `rows` documents of `reading` and the view `rows` in the design document `rows` */
export async function measureQueries(
  bench: Bench, cluster: MeasuredCluster, database: string, rows: number,
): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'sectional-bench-views-'))
  const measured: Row[] = []
  try {
    for (const { what, query, target } of requests) {
      const path = `/${database}/_design/rows/_view/rows?${query}`
      const middle = Math.floor(rows / 2)
      const sample = path.replaceAll('{number}', String(middle)).replaceAll('{group}', String(middle % groupCount))
      const file = join(scratch, 'answer.json')
      writeFileSync(file, await cluster.send('GET', sample, null, 200))
      const bare = await startBareProgram('bare-http-server.ts', ['0', file])
      try {
        measured.push(...await bench.compare({
          what: `${rows} rows: ${what}`, target,
          sectional: seconds => rate(cluster.nodes[0]!, path, rows, seconds),
          bare: seconds => rate(bare, path, rows, seconds),
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
