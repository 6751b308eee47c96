import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { HttpClient } from '../src/http-client.ts'
import { TestCluster } from '../src/test-cluster.ts'
import { administrator } from '../src/test-node.ts'

/** More clients than a process has file descriptors. */
const clients = 700

describe('clients that send slowly or nothing', () => {
  let cluster: TestCluster
  let sockets: Socket[]
  beforeEach(async () => {
    sockets = []
    cluster = await TestCluster.start({
      nodes: 3, descriptorsMax: 512,
      settings: {
        'limits/concurrent_requests': '150', 'limits/anonymous_bodies': '50', 'limits/anonymous_body_grace_ms': '2000',
        'limits/connections_per_address': '100',
      },
    })
    expect((await cluster.node(2).http.send('PUT', '/db')).status).to.equal(201)
  })
  afterEach(async function () {
    for (const socket of sockets) socket.destroy()
    await cluster.close(this.currentTest?.state === 'failed')
  })

  async function open(text: string): Promise<Socket> {
    const socket = connect(cluster.node(1).http.port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    socket.resume()
    await once(socket, 'connect')
    if (text !== '') socket.write(text)
    return socket
  }

  /** Checks, with connections of its own, that the nodes serve requests. */
  async function expectService(): Promise<void> {
    const client = new HttpClient(cluster.node(1).http.port, administrator)
    expect((await client.send('GET', '/_up', { auth: null })).status, '/_up').to.equal(200)
    const id = `d${sockets.length}`
    const written = await client.send('PUT', `/db/${id}?w=3`, { json: {} })
    expect(written.status, 'on the disks of three nodes').to.equal(201)
    expect((await client.send('GET', `/db/${id}?r=3`)).status).to.equal(200)
    client.close()
  }

  it('do not block others when they hold more idle connections than the process has descriptors', async () => {
    for (let opened = 0; opened < clients; opened += 100) await Promise.all(Array.from({ length: 100 }, () => open('')))
    await expectService()
    expect(sockets.filter(socket => socket.closed).length).to.be.above(clients - 512)
  })

  it('do not block others and their logins with bodies that never end, and get an error', async () => {
    const begun = 'POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
    const first = await open('')
    let received = ''
    first.on('data', data => { received += data })
    first.write(begun)
    if (!first.closed) await once(first, 'close')
    expect(received).to.match(/^HTTP\/1.1 408 [^]*"The body came too slowly: 2 s and /)
    for (let opened = 0; opened < clients; opened += 100) {
      await Promise.all(Array.from({ length: 100 }, () => open(begun)))
    }
    await expectService()
    const client = new HttpClient(cluster.node(1).http.port, administrator)
    const [name, password] = administrator.split(':')
    expect((await client.send('POST', '/_session', { auth: null, json: { name, password } })).status).to.equal(200)
    client.close()
  })
})
