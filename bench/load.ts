/**
 * A load generator that runs in its own process. It keeps a fixed number of raw keep-alive connections busy with one
 * request each, and counts complete responses. run.ts starts it with a job as JSON argument; it prints a LoadResult as
 * JSON.
 */
import { connect } from 'node:net'
import { documentBody, documentId, type IdOrder } from './documents.ts'

export interface LoadJob {
  readonly kind: 'get' | 'put' | 'bulk' | 'path' | 'post'
  readonly ports: readonly number[]
  readonly connections: number
  readonly seconds: number
  readonly database: string
  /**
   * get: number of existing documents, which are named `doc-0`, `doc-1` ... path, post: random numbers are below this
   * one.
   */
  readonly documents: number
  /**
   * path: what to GET; post: where to POST `body`. In the path of a GET and in the body, `{number}` is replaced by a
   * random number, `{padded}` by the same number with eight digits, and `{group}` by its remainder of `groups`.
   */
  readonly path?: string
  readonly body?: string
  readonly groups?: number
  /** put, bulk: makes the ascending ids of different jobs different. */
  readonly tag: string
  readonly ids: IdOrder
  /** bulk: documents in one request. */
  readonly batch: number
  readonly bodyBytes: number
  readonly auth: string
  /** Ends the job after this many requests, if they are done before the time is over. */
  readonly requestsMax?: number
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  /** Number of answers with a status other than 200 or 201, by status. */
  readonly failures: Readonly<Record<string, number>>
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
}

const job = JSON.parse(process.argv[2]!) as LoadJob
const authorization = `Basic ${Buffer.from(job.auth).toString('base64')}`
let sequence = 0

const head = `Host: bench\r\nAuthorization: ${authorization}\r\nAccept: application/json\r\n`

/** Returns the headers of a request with this body. */
function headOf(body: string): string {
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
}

/** Returns the function that creates the requests of one connection. */
function requestMaker(): () => string | Buffer {
  switch (job.kind) {
    case 'get':
      return () => `GET /${job.database}/doc-${Math.floor(Math.random() * job.documents)} HTTP/1.1\r\n${head}\r\n`
    case 'put': return () => {
      const number = sequence++
      const body = documentBody(number, job.bodyBytes)
      return `PUT /${job.database}/${documentId(job.tag, number, job.ids)} HTTP/1.1\r\n${headOf(body)}${body}`
    }
    case 'bulk': return bulkMaker()
    case 'path': return () => `GET ${withNumber(job.path!)} HTTP/1.1\r\n${head}\r\n`
    case 'post': return () => {
      const body = withNumber(job.body!)
      return `POST ${job.path!} HTTP/1.1\r\n${headOf(body)}${body}`
    }
  }
}

/** Puts a random number into a text. */
function withNumber(text: string): string {
  const number = Math.floor(Math.random() * job.documents)
  return text.replaceAll('{number}', String(number)).replaceAll('{group}', String(number % (job.groups ?? 1)))
    .replaceAll('{padded}', String(number).padStart(8, '0'))
}

/**
 * Reuses the documents and changes only their ids: generating a thousand texts would take a tenth of the time that
 * storing them takes.
 */
function bulkMaker(): () => Buffer {
  const docs = Array.from(
    { length: job.batch },
    (_, number) => `{"_id":"${documentId(job.tag, number, job.ids)}",${documentBody(number, job.bodyBytes).slice(1)}`,
  )
  const body = `{"docs":[${docs.join(',')}]}`
  const request = Buffer.from(`POST /${job.database}/_bulk_docs HTTP/1.1\r\n${headOf(body)}${body}`)
  const places: number[] = []
  for (let at = request.indexOf('{"_id":"'); at >= 0; at = request.indexOf('{"_id":"', at + 1)) {
    places.push(at + '{"_id":"'.length)
  }
  return () => {
    for (const place of places) request.write(documentId(job.tag, sequence++, job.ids), place, 'latin1')
    return request
  }
}

/** Returns the bytes and the status of the first response in the buffer, or null when it is incomplete. */
function completeAnswer(buffer: Buffer): { length: number; status: string } | null {
  const headEnd = buffer.indexOf('\r\n\r\n')
  if (headEnd < 0) return null
  const head = buffer.toString('latin1', 0, headEnd)
  const status = head.slice(9, 12)
  const announced = /\r\ncontent-length: (\d+)/i.exec(head)
  if (announced) {
    const length = headEnd + 4 + Number(announced[1])
    return buffer.length >= length ? { length, status } : null
  }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { length: headEnd + 4, status }
  const end = buffer.indexOf('\r\n0\r\n\r\n', headEnd)
  return end < 0 ? null : { length: end + 7, status }
}

const latencies: number[] = []
const failures: Record<string, number> = {}
const startedAt = performance.now()
const endsAt = startedAt + job.seconds * 1000
let sent = 0

function keepBusy(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let buffer: Buffer = Buffer.alloc(0)
    let sentAt = 0
    const nextRequest = requestMaker()
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const next = () => {
      if (performance.now() >= endsAt || sent >= (job.requestsMax ?? Infinity)) return void socket.end(() => resolve())
      sent++
      sentAt = performance.now()
      socket.write(nextRequest())
    }
    socket.on('connect', next)
    socket.on('error', reject)
    socket.on('data', chunk => {
      buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk])
      const answer = completeAnswer(buffer)
      if (!answer) return
      buffer = buffer.subarray(answer.length)
      if (answer.status === '200' || answer.status === '201') latencies.push(performance.now() - sentAt)
      else failures[answer.status] = (failures[answer.status] ?? 0) + 1
      next()
    })
    socket.on('close', () => resolve())
  })
}

await Promise.all(Array.from({ length: job.connections }, (_, index) => keepBusy(job.ports[index % job.ports.length]!)))
const seconds = (performance.now() - startedAt) / 1000
latencies.sort((a, b) => a - b)
const percentile = (share: number) =>
  Number((latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0).toFixed(2))
const result: LoadResult = {
  requests: latencies.length, seconds, failures,
  latencyMs: { p50: percentile(0.5), p99: percentile(0.99), max: percentile(1) },
}
console.log(JSON.stringify(result))
