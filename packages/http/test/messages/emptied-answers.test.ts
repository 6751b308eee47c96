import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { NodeHttpListener, type HttpServer } from '@sectional/runtime'
import { adminAuthorization, MemoryNode } from '../memory-node.ts'

/** The address, the status that is expected, and further headers. */
type Asked = readonly [target: string, status: number, headers?: Readonly<Record<string, string>>]

const rewritten = '/db/_design/d/_rewrite/'
const mixed = { accept: 'multipart/mixed' }
const related = { accept: 'multipart/related' }
const endpoints: readonly Asked[] = [
  ['/db/x/text', 200],
  ['/db/x/text', 206, { range: 'bytes=0-2' }],
  ['/db/x/text', 206, { range: 'bytes=0-1,3-4' }],
  ['/db/x/text', 416, { range: 'bytes=99-' }],
  ['/db/x/packed', 200],
  ['/db/x/packed', 200, { 'accept-encoding': 'gzip' }],
  ['/db/x', 200],
  ['/db/x?attachments=true', 200],
  ['/db/x?attachments=true', 200, related],
  ['/db/x?open_revs=all', 200],
  ['/db/x?open_revs=all', 200, mixed],
  ['/db/missing', 404],
  ['/db/_all_docs', 200],
  ['/db/_all_docs?include_docs=true', 200],
  ['/db/_changes', 200],
  ['/db/_changes?include_docs=true', 200],
  ['/db/_local_docs', 200],
  ['/db/_design/d/_show/f/x', 200],
  ['/db/%zz', 400],
  ['/', 200],
  ['/_all_dbs', 200],
  ['/_session', 200],
]

describe('an answer to HEAD that the client did not send itself', () => {
  let node: MemoryNode
  let listener: NodeHttpListener
  let server: HttpServer
  beforeEach(async () => {
    node = new MemoryNode()
    listener = new NodeHttpListener()
    server = await listener.listen({ host: '127.0.0.1', port: 0 }, node.api.handler)
    await node.put('/db')
    const { json: { rev } } = await node.put('/db/x/text', 'some text', { 'content-type': 'application/octet-stream' })
    await node.put(`/db/x/packed?rev=${rev}`, gzipSync('packed'), { 'content-encoding': 'gzip' })
    await node.put('/db/_design/d', {
      shows: { f: '(doc, req) => doc._id' },
      rewrites: '(req) => ({ path: "../../" + req.query.to, method: "HEAD", query: {} })',
    })
  })
  afterEach(async () => {
    listener.revoke()
    await node.stop()
  })

  /** Sends the requests on one connection, and returns the answers in the order in which they come. */
  async function pipeline(requests: readonly string[]): Promise<readonly Received[]> {
    const socket = connect(server.address.port, server.address.host)
    let received = ''
    socket.on('data', data => { received += data.toString('latin1') })
    socket.write(requests.join(''))
    await once(socket, 'close')
    return parse(received)
  }

  async function assertEmpty(asked: Asked, request: string): Promise<void> {
    const [target, status, headers] = asked
    const described = `${target} ${JSON.stringify(headers ?? {})}`
    const [first, second, ...others] = await pipeline([request, line('GET', '/db/x', { connection: 'close' })])
    assert.deepEqual([first?.status, first?.body, others.length], [status, '', 0], described)
    assert.equal(JSON.parse(second?.body ?? '{}')._id, 'x', described)
  }

  it('has no body and announces none, so that the next answer begins where it ends', async () => {
    for (const asked of endpoints) {
      const [target, , headers = {}] = asked
      const override = { 'x-http-method-override': 'HEAD', 'content-length': '0', ...headers }
      await assertEmpty(asked, line('POST', target, override))
    }
  })

  it('has none after a rewrite either', async () => {
    const targets = ['x/text', 'x/packed', 'x', '_all_docs', 'missing']
    for (const target of targets) {
      const asked: Asked = [`${rewritten}?to=${target}`, target === 'missing' ? 404 : 200]
      await assertEmpty(asked, line('GET', asked[0], {}))
    }
  })

  it('is 304 as for HEAD itself', async () => {
    const { headers } = await node.get('/db/x/text')
    const asked = { 'x-http-method-override': 'HEAD', 'content-length': '0', 'if-none-match': headers['etag']! }
    await assertEmpty(['/db/x/text', 304], line('POST', '/db/x/text', asked))
  })

  it('has the length of the body of GET when the client sent HEAD', async () => {
    const [answer] = await pipeline([line('HEAD', '/db/x/text', { connection: 'close' })])
    assert.match(answer!.head, /^content-length: 9$/im)
  })
})

function line(method: string, target: string, headers: Readonly<Record<string, string>>): string {
  const all = { host: 'node.example', authorization: adminAuthorization, ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
}

interface Received { readonly status: number; readonly head: string; readonly body: string }

/** Reads answers as a client does that sent no HEAD. */
function parse(received: string): readonly Received[] {
  const answers: Received[] = []
  for (let rest = received; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n')
    const head = rest.slice(0, end)
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
    answers.push({ status: Number(head.split(' ')[1]), head, body: rest.slice(end + 4, end + 4 + length) })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}
