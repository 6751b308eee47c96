import { expect } from 'chai'
import type { MemoryLog, MemoryRuntime } from '@sectional/runtime'
import type { Node } from '../src/node.ts'
import { MemoryCluster } from './memory-cluster.ts'

const login = { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}` }

describe('listeners whose address is changed while the node runs', () => {
  let settings: string[]
  let cluster: MemoryCluster
  let runtime: MemoryRuntime
  let node: Node

  async function start(...lines: readonly string[]): Promise<void> {
    settings = ['[chttpd]', 'bind_address = host1', ...lines]
    cluster = new MemoryCluster(1, {}, settings)
    ;({ runtime, node } = await cluster.make(1))
    await cluster.finish(node.start())
    await cluster.until('the node is up', async () => (await send(5984, 'GET', '/_up')).status === 200)
  }

  afterEach(async () => {
    await cluster.finish(node.stop())
    expect(cluster.clock.pendingTimers).to.equal(0)
  })

  async function send(port: number, method: string, target: string, json?: unknown): Promise<any> {
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const headers = { ...login, accept: 'application/json', 'content-type': 'application/json' }
    try {
      const answer = await cluster.finish(runtime.http.inject({ method, target, headers, ...body }, port))
      return { status: answer.status, body: JSON.parse(Buffer.from(answer.body).toString()) }
    } catch (error) {
      return { status: (error as Error).message }
    }
  }

  const change = (port: number, option: string, value: string): Promise<any> =>
    send(port, 'PUT', `/_node/_local/_config/${option}`, value)
  const up = async (port: number): Promise<unknown> => (await send(port, 'GET', '/_up')).status

  it('listen on the new port at once, and the request that changed it is answered', async () => {
    await start()
    expect(await change(5984, 'chttpd/port', '6001')).to.deep.equal({ status: 200, body: '5984' })
    expect(node.http).to.include({ host: 'host1', port: 6001 })
    expect([await up(6001), await up(5984)]).to.deep.equal([200, 'nobody listens'])
    const [line] = (runtime.log as MemoryLog).lines.filter(({ message }) => message === 'listening')
    expect(line!.fields['http']).to.include({ host: 'host1', port: 6001 })
    expect((await send(6001, 'DELETE', '/_node/_local/_config/chttpd/port')).status).to.equal(200)
    expect([await up(5984), await up(6001)]).to.deep.equal([200, 'nobody listens'])
  })

  it('listen on the same port of another host', async () => {
    await start()
    expect((await change(5984, 'chttpd/bind_address', 'any')).status).to.equal(200)
    expect(node.http).to.include({ host: '::', port: 5984 })
    expect(await up(5984)).to.equal(200)
  })

  it('stay where they are for port 0 and for their own address', async () => {
    await start()
    for (const [option, value] of [['port', '0'], ['port', '5984'], ['bind_address', 'host1']] as const) {
      expect((await change(5984, `chttpd/${option}`, value)).status).to.equal(200)
      expect(await up(5984)).to.equal(200)
    }
    expect((runtime.log as MemoryLog).lines.filter(({ message }) => message === 'listening')).to.have.length(0)
  })

  it('are changed one after the other', async () => {
    await start()
    const answers = await Promise.all([
      change(5984, 'chttpd/bind_address', 'host2'), change(5984, 'chttpd/port', '6001'),
      change(5984, 'chttpd/port', '6002'),
    ])
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200])
    expect(node.http).to.include({ host: 'host2', port: 6002 })
    expect([await up(5984), await up(6001), await up(6002)])
      .to.deep.equal(['nobody listens', 'nobody listens', 200])
  })

  it('refuse a port that is in use, and stay open', async () => {
    await start()
    const other = await runtime.http.listen({ host: 'host1', port: 6001 }, () => {})
    const { status, body } = await change(5984, 'chttpd/port', '6001')
    expect([status, body.error]).to.deep.equal([400, 'bad_request'])
    expect(body.reason).to.match(/^chttpd\/port: host1:6001 cannot be bound: it is in use\. Choose an address/)
    expect((await send(5984, 'GET', '/_node/_local/_config/chttpd/port')).body).to.equal('5984')
    await other.close(0)
  })

  it('end the feeds of the old address with a complete answer', async () => {
    await start()
    await send(5984, 'PUT', '/db?q=1')
    await send(5984, 'PUT', '/db/a', {})
    const target = '/db/_changes?feed=continuous&heartbeat=1000'
    const { chunks } = await cluster.finish(runtime.http.open({ target, headers: login }, 5984))
    const lines: string[] = []
    const ended = (async () => { for await (const chunk of chunks) lines.push(Buffer.from(chunk).toString()) })()
    await cluster.until('the feed waits', () => lines.length > 0)
    await change(5984, 'chttpd/port', '6001')
    await cluster.finish(ended)
    expect(lines.join('')).to.match(/"id":"a"[^]*"last_seq"/)
  })

  it('follow a reload, together with those of HTTPS, or all stay', async () => {
    await start('[ssl]', 'enable = true')
    settings.push('port = 6984', '[chttpd]', 'port = 6984')
    const refused = await send(5984, 'POST', '/_node/_local/_config/_reload')
    expect(refused.status).to.equal(400)
    expect(refused.body.reason).to.match(/^Nothing was reloaded: host1:6984 cannot be bound: it is in use\./)
    expect([await up(5984), await up(6984)]).to.deep.equal([200, 200])
    settings.push('[ssl]', 'port = 5984')
    expect((await send(5984, 'POST', '/_node/_local/_config/_reload')).status).to.equal(200)
    expect(node.http).to.include({ host: 'host1', port: 6984 })
    expect(node.https).to.include({ host: 'host1', port: 5984, encrypted: true })
    expect((await change(5984, 'chttpd/bind_address', 'host2')).status).to.equal(200)
    expect([node.http.host, node.https!.host]).to.deep.equal(['host2', 'host2'])
    expect([await up(5984), await up(6984)]).to.deep.equal([200, 200])
  })

  it('leave nothing open when the node is stopped meanwhile', async () => {
    await start()
    const changed = change(5984, 'chttpd/port', '6001')
    await cluster.finish(node.stop())
    await changed
    expect([await up(5984), await up(6001)]).to.deep.equal(['nobody listens', 'nobody listens'])
  })
})

describe('the listener of another node', () => {
  it('is moved by a change through any node', async () => {
    const cluster = new MemoryCluster(3)
    for (const number of [1, 2, 3]) await cluster.start(number)
    await cluster.ready()
    const { status, body } = await cluster.send(1, 'PUT', '/_node/node2@memory/_config/chttpd/port', '6001')
    expect([status, body]).to.deep.equal([200, '5984'])
    expect([1, 2, 3].map(number => cluster.node(number).http.port)).to.deep.equal([5984, 6001, 5984])
    expect((await cluster.send(2, 'GET', '/_up')).status).to.equal(200)
    await cluster.close()
    expect(cluster.clock.pendingTimers).to.equal(0)
  })
})
