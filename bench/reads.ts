/**
 * Measures lists, feeds, bulk reads and attachments of one node, compared with classic-level scanned into a node:http
 * response and files that are piped through one.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measure, type Bench, type Measured, type Row } from './comparison.ts'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import { runScript, startBareProgram, type MeasuredServer } from './measured-process.ts'
import type { TransferJob, TransferResult } from './transfers.ts'

const documents = 50_000
const bodyBytes = 1000
const batch = 1000
const connections = 4
const attachmentBytes = 10 * 1000 * 1000
const rowTarget = '0.4 or more'
const transferTarget = '0.5 or more'
const headers = { authorization: `Basic ${Buffer.from(auth).toString('base64')}`, 'content-type': 'application/json' }

type Transfer = Pick<TransferJob, 'method' | 'path' | 'jsonFile' | 'uploadBytes'>

let jobs = 0

/** @param each number of items in one response */
function transferred(server: MeasuredServer, transfer: Transfer, each: number, seconds: number): Promise<Measured> {
  return measure([server], async () => {
    const job: TransferJob = { ...transfer, port: server.port, connections, seconds, auth, tag: `job${jobs++}` }
    const result = await runScript('transfers.ts', [JSON.stringify(job)]) as TransferResult
    return { count: result.requests * each, seconds: result.seconds }
  })
}

/** @param bodies bodies that are sent, one request each; an empty text sends no body */
async function rowsOf(node: MeasuredServer, transfer: Transfer, bodies: readonly string[] = ['']): Promise<string> {
  const rows: string[] = []
  for (const body of bodies) {
    const answer = await fetch(`http://127.0.0.1:${node.port}${transfer.path}`, {
      method: transfer.method, headers, ...(body !== '' && { body }),
    })
    if (answer.status !== 200) throw new Error(`${transfer.path}: ${answer.status}`)
    // Lists and feeds have one row per line; bulk reads return one long line.
    const text = body === '' ? await answer.text() : (await answer.text()).replaceAll(/,?\{"id":"/g, '\n{"id":"')
    for (const line of text.split('\n')) if (line.includes('"id":"')) rows.push(line)
  }
  return rows.join('\n')
}

/** Returns bodies of `_bulk_get` that together request every document once. The documents of one body are far apart. */
function bulkGets(): string[] {
  return Array.from({ length: documents / batch }, (_, body) => (
    JSON.stringify({
      docs: Array.from({ length: batch }, (_, index) => ({ id: `doc-${((body * batch + index) * 7919) % documents}` })),
    })
  ))
}

/** Stores documents with random ids in one node, and gives the rows that it returns to the bare program. */
export async function measureReads(bench: Bench, folder: string | undefined): Promise<Row[]> {
  const scratch = mkdtempSync(join(folder ?? tmpdir(), 'sectional-bench-bare-'))
  const cluster = await MeasuredCluster.start(1, folder)
  const bare = await startBareProgram('bare-records-server.ts', [scratch])
  const [node] = cluster.nodes as [MeasuredServer]
  try {
    await cluster.fill('reads', documents, batch, bodyBytes)
    const wanted = bulkGets()
    const allFile = join(scratch, 'all.json')
    const sameFile = join(scratch, 'same.json')
    writeFileSync(allFile, wanted.join('\n'))
    writeFileSync(sameFile, wanted[0]!)
    const kinds: readonly (readonly [what: string, kind: string, transfer: Transfer, rows: number])[] = [
      ['`_all_docs`, rows', 'list', { method: 'GET', path: '/reads/_all_docs' }, documents],
      [
        '`_all_docs` with documents, rows', 'list-docs', { method: 'GET', path: '/reads/_all_docs?include_docs=true' },
        documents,
      ],
      ['`_changes`, rows', 'feed', { method: 'GET', path: '/reads/_changes' }, documents],
      [
        '`_changes` with documents, rows', 'feed-docs', { method: 'GET', path: '/reads/_changes?include_docs=true' },
        documents,
      ],
      [
        '`_bulk_get` of 1000, documents', 'bulk-get', { method: 'POST', path: '/reads/_bulk_get', jsonFile: allFile },
        batch,
      ],
      [
        '`_bulk_get` of the same 1000 again, documents', 'bulk-get',
        { method: 'POST', path: '/reads/_bulk_get', jsonFile: sameFile }, batch,
      ],
    ]
    const rows: Row[] = []
    for (const [what, kind, transfer, count] of kinds) {
      const lines = await rowsOf(node, transfer, transfer.jsonFile === undefined ? undefined : wanted)
      await fetch(`http://127.0.0.1:${bare.port}/records/${kind}`, { method: 'PUT', body: lines })
      rows.push(...await bench.compare({
        what: `one node: ${what}`, target: rowTarget,
        sectional: seconds => transferred(node, transfer, count, seconds),
        bare: seconds => transferred(bare, { ...transfer, path: `/records/${kind}` }, count, seconds),
      }))
    }
    const megabytes = attachmentBytes / 1e6
    rows.push(...await bench.compare({
      what: 'one node: attachments of 10 MB up', target: transferTarget, unit: ' MB/s',
      sectional: seconds =>
        transferred(
          node, { method: 'PUT', path: '/reads/up-{n}/content', uploadBytes: attachmentBytes }, megabytes, seconds,
        ),
      bare: seconds =>
        transferred(bare, { method: 'PUT', path: '/files/{n}', uploadBytes: attachmentBytes }, megabytes, seconds),
    }))
    const content = Buffer.alloc(attachmentBytes, 'content of an attachment ')
    const targets = [`http://127.0.0.1:${node.port}/reads/down/content`, `http://127.0.0.1:${bare.port}/files/down`]
    for (const url of targets) {
      await fetch(url, {
        method: 'PUT', headers: { ...headers, 'content-type': 'application/octet-stream' }, body: content,
      })
    }
    rows.push(...await bench.compare({
      what: 'one node: attachments of 10 MB down', target: transferTarget, unit: ' MB/s',
      sectional: seconds => transferred(node, { method: 'GET', path: '/reads/down/content' }, megabytes, seconds),
      bare: seconds => transferred(bare, { method: 'GET', path: '/files/down' }, megabytes, seconds),
    }))
    return rows
  } finally {
    await bare.stop()
    await cluster.stop()
    rmSync(scratch, { recursive: true })
  }
}
