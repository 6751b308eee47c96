/**
 * Keeps a fixed number of connections busy with long responses or uploads. It runs in its own process, takes a
 * TransferJob as JSON argument, and prints a TransferResult as JSON.
 */
import { Agent, request } from 'node:http'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'

export interface TransferJob {
  readonly port: number
  readonly method: 'GET' | 'POST' | 'PUT'
  /** `{n}` is replaced by a number that is used once. */
  readonly path: string
  /** A file with the JSON texts to send, one per line, in turns. */
  readonly jsonFile?: string
  /** Number of random bytes to send. */
  readonly uploadBytes?: number
  readonly tag: string
  readonly connections: number
  readonly seconds: number
  readonly auth: string
}

export interface TransferResult { readonly requests: number; readonly bytes: number; readonly seconds: number }

const job = JSON.parse(process.argv[2]!) as TransferJob
const agent = new Agent({ keepAlive: true, maxSockets: job.connections })
const bodies = job.jsonFile !== undefined ? readFileSync(job.jsonFile, 'utf8').split('\n')
  .map(line => Buffer.from(line))
  : job.uploadBytes !== undefined ? [randomBytes(job.uploadBytes)] : []
const common = { accept: 'application/json', authorization: `Basic ${Buffer.from(job.auth).toString('base64')}` }
const type = job.jsonFile !== undefined ? 'application/json' : 'application/octet-stream'
let requests = 0
let bytes = 0
let number = 0

function transfer(): Promise<void> {
  return new Promise((resolve, reject) => {
    const path = job.path.replace('{n}', `${job.tag}-${number}`)
    const body = bodies[number++ % bodies.length]
    const headers = body === undefined ? common : { ...common, 'content-length': body.length, 'content-type': type }
    const sent = request({ agent, host: '127.0.0.1', port: job.port, method: job.method, path, headers }, answer => {
      answer.on('data', (chunk: Buffer) => { bytes += chunk.length })
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode !== 200 && answer.statusCode !== 201) {
          return reject(new Error(`${job.method} ${path}: ${answer.statusCode}`))
        }
        requests++
        resolve()
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const startedAt = performance.now()
const endsAt = startedAt + job.seconds * 1000
await Promise.all(Array.from({ length: job.connections }, async () => {
  do await transfer()
  while (performance.now() < endsAt)
}))
const result: TransferResult = {
  requests, bytes: bytes + requests * (job.uploadBytes ?? 0), seconds: (performance.now() - startedAt) / 1000,
}
console.log(JSON.stringify(result))
agent.destroy()
