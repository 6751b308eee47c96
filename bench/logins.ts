/**
 * Compares the ways to log in by the GET of a document with each of them, on one node over real sockets:
 * `node bench/logins.ts [--slices 40] [--folder DIR]` after a build, on Linux. The kinds are measured in turns, for a
 * fraction of a second each, so that what else the machine does concerns all of them alike. Prints the rates and the
 * CPU time of the node for each request, both in proportion to the cheapest login.
 */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { auth, MeasuredCluster } from './measured-cluster.ts'
import type { MeasuredServer } from './measured-process.ts'

const { values: flags } = parseArgs({ options: {
  slices: { type: 'string', default: '40' }, folder: { type: 'string' },
} })
const slices = Number(flags.slices)
const warmUpSlices = 8
const sliceMs = 150
const connections = 32
const documents = 20_000
const database = 'bench'
const secret = Buffer.from('a secret of thirty-two characters')
const proxySecret = 'a secret of the proxy and the node'
const user = 'ann:benchmark'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const basic = (pair: string): string => `Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`

/** Returns the header with a token of the user that expires in an hour. */
function token(alg: 'HS256' | 'ES256'): string {
  const exp = Math.floor(Date.now() / 1000) + 3600
  const input = `${encode({ alg, kid: 'bench' })}.${encode({ sub: 'ann', exp, '_service.roles': ['_admin'] })}`
  const signature = alg === 'HS256'
    ? createHmac('sha256', secret).update(input).digest()
    : sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `Authorization: Bearer ${input}.${signature.toString('base64url')}\r\n`
}

async function cookie(cluster: MeasuredCluster, pair: string): Promise<string> {
  const [name, password] = pair.split(':')
  const answer = await fetch(`http://127.0.0.1:${cluster.nodes[0]!.port}/_session`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name, password }),
  })
  return `Cookie: ${/AuthSession=[^;]+/.exec(answer.headers.get('set-cookie')!)![0]}\r\n`
}

async function prepare(cluster: MeasuredCluster): Promise<void> {
  const set = async (name: string, value: string): Promise<void> => {
    await cluster.send('PUT', `/_node/_local/_config/${name}`, value, 200)
  }
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString().trim().replaceAll('\n', '\\n')
  await cluster.fill(database, documents, 1000, 1000)
  await cluster.send('PUT', `/${database}/_security`, {}, 200)
  await cluster.send('PUT', '/_users/org.couchdb.user:ann', {
    name: 'ann', password: 'benchmark', roles: [], type: 'user',
  }, 201)
  await set('jwt_keys/hmac:bench', secret.toString('base64'))
  await set('jwt_keys/ec:bench', pem)
  await set('chttpd_auth/secret', proxySecret)
  await set('chttpd_auth/proxy_use_secret', 'true')
  await set('chttpd/authentication_handlers', 'proxy, cookie, jwt, default')
}

/** The lines of the head of each kind. A session cookie is renewed by each answer from its second minute on. */
const kinds: Readonly<Record<string, (cluster: MeasuredCluster) => string | Promise<string>>> = {
  'anonymous, in a public database': () => '',
  'Basic, administrator': () => basic(auth),
  'Basic, user': () => basic(user),
  'cookie, administrator': cluster => cookie(cluster, auth),
  'cookie, user': cluster => cookie(cluster, user),
  'JWT, HS256': () => token('HS256'),
  'JWT, ES256': () => token('ES256'),
  'proxy': () => `X-Auth-Service-UserName: ann\r\nX-Auth-Service-Roles: _admin\r\nX-Auth-Service-Token: ${
    createHmac('sha256', proxySecret).update('ann').digest('hex')}\r\n`,
}
/** One keep-alive connection that asks for documents with the same credentials. */
class Client {
  readonly #socket: Socket
  readonly #credentials: string
  #answer = Promise.withResolvers<void>()
  #received: Buffer = Buffer.alloc(0)

  private constructor(socket: Socket, credentials: string) {
    this.#socket = socket
    this.#credentials = credentials
    socket.on('data', chunk => { this.#receive(chunk) })
    socket.on('close', () => { this.#answer.reject(new Error('the node has closed a connection')) })
  }

  static async open(port: number, credentials: string): Promise<Client> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Client(socket, credentials)
  }

  /** Sends a request, and resolves when its response has arrived. @throws Error unless it succeeds */
  get(): Promise<void> {
    this.#answer = Promise.withResolvers()
    const path = `/${database}/doc-${Math.floor(Math.random() * documents)}`
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\n${this.#credentials}Accept: application/json\r\n\r\n`)
    return this.#answer.promise
  }

  close(): void {
    this.#answer.promise.catch(() => {})
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
    if (this.#received.length < headEnd + 4 + length) return
    this.#received = Buffer.alloc(0)
    if (head.startsWith('HTTP/1.1 200 ')) this.#answer.resolve()
    else this.#answer.reject(new Error(head))
  }
}

/** The sums of all slices of one kind. */
interface Sums { requests: number; seconds: number; cpuUs: number }

/** Nanoseconds of CPU time that all threads of a process have had. */
function cpuNs(processId: number): number {
  const tasks = `/proc/${processId}/task`
  return readdirSync(tasks)
    .reduce((sum, task) => sum + Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]), 0)
}

/** Keeps the clients of one kind busy for a slice of time. */
async function runSlice(clients: readonly Client[], processId: number, sums: Sums): Promise<void> {
  const cpuBefore = cpuNs(processId)
  const begin = performance.now()
  await Promise.all(clients.map(async client => {
    while (performance.now() - begin < sliceMs) {
      await client.get()
      sums.requests++
    }
  }))
  sums.seconds += (performance.now() - begin) / 1000
  sums.cpuUs += (cpuNs(processId) - cpuBefore) / 1000
}

function print(results: ReadonlyMap<string, Sums>): void {
  const rateOf = ({ requests, seconds }: Sums): number => requests / seconds
  const cpuOf = ({ requests, cpuUs }: Sums): number => cpuUs / requests
  const logins = [...results].filter(([kind]) => !kind.startsWith('anonymous')).map(([, sums]) => sums)
  const fastest = Math.max(...logins.map(rateOf))
  const cheapest = Math.min(...logins.map(cpuOf))
  console.log('| GET with | rate | of the fastest login | CPU | of the cheapest login |\n|---|---|---|---|---|')
  for (const [kind, sums] of results) {
    const rate = `${Math.round(rateOf(sums))}/s | ${(rateOf(sums) / fastest).toFixed(2)}`
    console.log(`| ${kind} | ${rate} | ${cpuOf(sums).toFixed(1)} us | ${(cheapest / cpuOf(sums)).toFixed(2)} |`)
  }
}

const cluster = await MeasuredCluster.start(1, flags.folder)
try {
  await prepare(cluster)
  const [{ port, processId }] = cluster.nodes as [MeasuredServer]
  const measured = await Promise.all(Object.entries(kinds).map(async ([kind, credentialsOf]) => {
    const credentials = await credentialsOf(cluster)
    const clients = await Promise.all(Array.from({ length: connections }, () => Client.open(port, credentials)))
    return { kind, clients, sums: { requests: 0, seconds: 0, cpuUs: 0 } }
  }))
  for (let slice = -warmUpSlices; slice < slices; slice++) {
    for (const { clients, sums } of measured) {
      await runSlice(clients, processId, slice < 0 ? { requests: 0, seconds: 0, cpuUs: 0 } : sums)
    }
  }
  for (const { clients } of measured) for (const client of clients) client.close()
  print(new Map(measured.map(({ kind, sums }) => [kind, sums])))
} finally {
  await cluster.stop()
}
