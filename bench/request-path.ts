/**
 * Runs a node without sockets and measures the cost of a request between its arrival and its response, so that changes
 * to the hot paths are visible despite the noise of a busy machine. Run `node --conditions=sectional-source
 * bench/request-path.ts [get,get-again,put,bulk,bulk-get,bulk-get-again,all-docs,all-docs-with,changes,changes-with,
 * logins] [rounds=3]`; with `--cpu-prof` to profile it. Kinds with `-again` request the same thousand documents all the
 * time. `logins` compares `get-again` with each kind of credentials; the other kinds use Basic credentials.
 * Prints CPU microseconds per request (per document of a bulk request, per row of a list), including LevelDB's threads.
 */
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createRealRuntime } from '@sectional/runtime'
import type { HttpExchange, HttpHandler, HttpListener } from '@sectional/runtime'
import { createNode, LiveConfiguration, nodeOptions } from '@sectional/server'

const kinds = (process.argv[2] ?? 'get,put,bulk').split(',')
const rounds = Number(process.argv[3] ?? 3)
const documents = 50_000
const bulk = 1_000
const filler = 'x'.repeat(940)
const never = new AbortController().signal

/** Headers with the credentials of an administrator. */
const basicCredentials = { authorization: 'Basic YWRtaW46YmVuY2htYXJr' }
const secret = 'a secret of the benchmark, long enough for its use'
let credentials: Readonly<Record<string, string>> = basicCredentials

let handler: HttpHandler = () => { throw new Error('the node does not listen') }

function request(method: string, target: string, text: string, wanted: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const body = Buffer.from(text)
    const headers: Record<string, string> = {
      host: 'bench', accept: 'application/json', ...credentials,
    }
    if (text !== '') {
      Object.assign(headers, { 'content-type': 'application/json', 'content-length': String(body.length) })
    }
    const exchange: HttpExchange = {
      method, target, headers, remoteAddress: '127.0.0.1', encrypted: false, isRefused: false, bodyPace: null,
      signal: never, headersSent: false, delivery: undefined,
      readBody: async () => body,
      get body(): never { throw new Error('not used') },
      send: (status, _headers, answer) =>
        status === wanted
          ? resolve()
          : reject(new Error(`${method} ${target}: ${status} ${Buffer.from(answer).toString()}`)),
      stream: status => {
        if (status !== wanted) reject(new Error(`${method} ${target}: ${status}`))
        return { write: async () => {}, end: resolve, abort: () => reject(new Error('aborted')) }
      },
    }
    handler(exchange)
  })
}

async function pooled(count: number, workers: number, one: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(Array.from({ length: workers }, async () => { while (next < count) await one(next++) }))
}

let sequence = 0
function document(id: string | null): string {
  const number = sequence++
  return `{${id === null ? '' : `"_id":"${id}",`}"number":${number},"name":"document ${number}","text":"${filler}"}`
}

function bulkBody(prefix: string): string {
  return `{"docs":[${Array.from({ length: bulk }, (_, index) => document(`${prefix}-${index}`)).join(',')}]}`
}

async function measured(label: string, count: number, per: number, run: () => Promise<void>): Promise<void> {
  const cpuBefore = process.cpuUsage()
  const threadBefore = process.threadCpuUsage()
  await run()
  const cpu = process.cpuUsage(cpuBefore)
  const thread = process.threadCpuUsage(threadBefore)
  const total = (cpu.user + cpu.system) / count / per
  const onMainThread = (thread.user + thread.system) / count / per
  const [all, main] = [total, onMainThread].map(us => `${us.toFixed(1).padStart(6)} us`)
  console.log(`${label.padEnd(14)} ${all}, ${main} of it on the main thread`)
}

const directory = mkdtempSync(join(tmpdir(), 'request-path-'))
/** The hash of a password with few rounds, so that a request costs hardly any time for its check. */
const passwordHash = '-pbkdf2:sha256-352a28fe7c362b729162401d448bd8fe87fbe6c1a50da09681b87d5d4b56ee26,salt,10'
const runtime = createRealRuntime({ dataDirectory: directory, log: { level: 'warn' } })
const shipped = fileURLToPath(new URL('../packages/server/default.ini', import.meta.url))
const configuration = await LiveConfiguration.load({
  read: async () => [
    { name: shipped, text: readFileSync(shipped, 'utf8'), shipped: true },
    { name: 'local.ini', text: [
      '[cluster]', 'port = 0', '[admins]', `admin = ${passwordHash}`,
      '[chttpd]', 'authentication_handlers = cookie, proxy, jwt, default', '[chttpd_auth]', `secret = ${secret}`,
      'timeout = 100000', '[jwt_keys]', `hmac:bench = ${Buffer.from(secret).toString('base64')}`, '',
    ].join('\n') },
  ],
  write: async () => {},
}, {})
const listener: HttpListener = {
  listen: async (address, handle) => {
    handler = handle
    return { address, close: async () => {} }
  },
  endStalled: () => false,
}
const node = createNode({ ...runtime, http: listener }, {
  options: nodeOptions(configuration.settings()), configuration, version: '0', onFatal: error => { throw error },
})
await node.start()
while (node.control.unavailableReason() !== null) await pause(20)
await request('PUT', '/bench', '', 201)
for (let from = 0; from < documents; from += bulk) {
  const docs = Array.from({ length: bulk }, (_, index) => document(`doc-${from + index}`))
  await request('POST', '/bench/_bulk_docs', `{"docs":[${docs.join(',')}]}`, 201)
}
const work: Record<string, (round: number) => Promise<void>> = {
  get: round => gets('get', documents, round),
  'get-again': () => gets('get-again', bulk),
  put: round => {
    const bodies = Array.from({ length: 20_000 }, () => document(null))
    return measured(
      'put', bodies.length, 1,
      () => pooled(bodies.length, 64, index => request('PUT', `/bench/put-${round}-${index}`, bodies[index]!, 201)),
    )
  },
  bulk: round => {
    const bodies = Array.from({ length: 30 }, (_, index) => bulkBody(`bulk-${round}-${index}`))
    return measured(
      'bulk', bodies.length, bulk,
      () => pooled(bodies.length, 4, index => request('POST', '/bench/_bulk_docs', bodies[index]!, 201)),
    )
  },
  'bulk-get': round => bulkGets('bulk-get', documents, round),
  'bulk-get-again': () => bulkGets('bulk-get-again', bulk),
  'all-docs': () => listed('all-docs', '_all_docs'),
  'all-docs-with': () => listed('all-docs-with', '_all_docs?include_docs=true'),
  logins: async () => {
    const cookie = { cookie: `AuthSession=${sessionCookie()}` }
    const token = { authorization: `Bearer ${signedToken()}` }
    for (const [label, used] of Object.entries({ basic: basicCredentials, cookie, jwt: token })) {
      credentials = used
      await gets(`get ${label}`, bulk)
    }
    credentials = basicCredentials
  },
  changes: () => listed('changes', '_changes'),
  'changes-with': () => listed('changes-with', '_changes?include_docs=true'),
}

function sessionCookie(): string {
  const message = `admin:${Math.floor(Date.now() / 1000).toString(16).toUpperCase()}`
  const signature = createHmac('sha256', `${secret}salt`).update(message).digest()
  return Buffer.concat([Buffer.from(`${message}:`), signature]).toString('base64url')
}

function signedToken(): string {
  const claims = { 'sub': 'bench', 'exp': 4_102_444_800, 'iss': 'https://id.example', '_service.roles': ['_admin'] }
  const input = [{ alg: 'HS256', kid: 'bench' }, claims]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

/** Returns ids of `distinct` different documents that are far apart. */
function spread(index: number, distinct: number, round = 0): string {
  return `doc-${(index % distinct * 7919 + round) % documents}`
}

function gets(label: string, distinct: number, round?: number): Promise<void> {
  return measured(
    label, documents, 1,
    () => pooled(documents, 64, index => request('GET', `/bench/${spread(index, distinct, round)}`, '', 200)),
  )
}

function bulkGets(label: string, distinct: number, round?: number): Promise<void> {
  const bodies = Array.from({ length: documents / bulk }, (_, index) => (
    JSON.stringify({
      docs: Array.from({ length: bulk }, (_, at) => ({ id: spread(index * bulk + at, distinct, round) })),
    })
  ))
  return measured(
    label, bodies.length, bulk,
    () => pooled(bodies.length, 4, index => request('POST', '/bench/_bulk_get', bodies[index]!, 200)),
  )
}

function listed(label: string, target: string): Promise<void> {
  return measured(label, 4, documents, () => pooled(4, 4, () => request('GET', `/bench/${target}`, '', 200)))
}

for (const kind of kinds) for (let round = 0; round < rounds; round++) await work[kind]!(round)
await node.stop()
await runtime.close()
rmSync(directory, { recursive: true })
