import { expect } from 'chai'
import { basic, MemoryNode } from './memory-node.ts'

/** A promise that the test resolves. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>(resolve => { open = resolve })
  return { opened, open: () => open() }
}

describe('overload', () => {
  it('refuses requests above the bound with 503 and Retry-After', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { concurrentRequestsMax: 2 },
      wrap: coordinator => ({ ...coordinator, openDocument: async () => { await door.opened; return null } }),
    })
    await node.put('/db')
    const waiting = [node.get('/db/a'), node.get('/db/b')]
    const refused = await node.get('/_up')
    expect([refused.status, refused.json.error, refused.headers['retry-after']]).to.deep.equal([503, 'service unavailable', '1'])
    door.open()
    expect((await Promise.all(waiting)).map(answer => answer.status)).to.deep.equal([404, 404])
    expect((await node.get('/_up')).status).to.equal(200)
    await node.stop()
  })

  it('refuses bodies that do not fit into the memory set aside, and frees it afterwards', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { bufferedBodyBytesMax: 1500 },
      wrap: coordinator => ({ ...coordinator, updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) } }),
    })
    await node.put('/db')
    const first = node.put('/db/a', { text: 'x'.repeat(1000) })
    expect((await node.put('/db/b', { text: 'x'.repeat(1000) })).status).to.equal(503)
    door.open()
    expect((await first).status).to.equal(201)
    expect((await node.put('/db/b', { text: 'x'.repeat(1000) })).status).to.equal(201)
    await node.stop()
  })

  it('refuses large answers while others lie there that their clients do not take', async () => {
    const door = gate()
    const node = new MemoryNode({ http: { bufferedBodyBytesMax: 50_000 } })
    await node.put('/db')
    await node.put('/db/large', { text: 'x'.repeat(40_000) })
    await node.put('/db/small', { text: 'x' })
    const statuses: number[] = []
    const read = (delivery: Promise<void> | undefined): Promise<void> => new Promise(resolve => node.api.handler({
      method: 'GET', target: '/db/large', headers: { authorization: basic('admin', 'secret') }, remoteAddress: '127.0.0.1', encrypted: false,
      signal: new AbortController().signal, headersSent: false, delivery,
      readBody: async () => new Uint8Array(),
      body: (async function* () {})(),
      send: status => { statuses.push(status); resolve() },
      stream: () => { throw new Error('not used') },
    }))
    await read(door.opened)
    const refused = await node.get('/db/large')
    expect([refused.status, refused.headers['retry-after']]).to.deep.equal([503, '1'])
    expect((await node.get('/db/small')).status).to.equal(200)
    const written = await node.post('/db/_bulk_docs', { docs: Array.from({ length: 300 }, () => ({})) })
    expect([written.status, written.text.length > 16_384], 'what was written is said').to.deep.equal([201, true])
    door.open()
    await door.opened
    expect((await node.get('/db/large')).status).to.equal(200)
    expect(statuses).to.deep.equal([200])
    await node.stop()
  })

  it('stops after the running requests and the batched writes have ended', async () => {
    const door = gate()
    const reached = gate()
    let started = 0
    let written = 0
    const node = new MemoryNode({
      wrap: coordinator => ({
        ...coordinator,
        updateDocuments: async (...call) => {
          if (++started === 2) reached.open()
          await door.opened
          written++
          return coordinator.updateDocuments(...call)
        },
      }),
    })
    await node.put('/db')
    expect((await node.put('/db/log?batch=ok', {})).status).to.equal(202)
    const running = node.put('/db/doc', {})
    await reached.opened
    const stopping = node.stop()
    expect((await node.get('/_up')).status).to.equal(503)
    expect(written).to.equal(0)
    door.open()
    await stopping
    expect(written).to.equal(2)
    expect((await running).status).to.equal(201)
    expect(node.clock.pendingTimers).to.equal(0)
  })

  it('awaits a batched write once the bound is reached', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { batchedDocumentsMax: 1 },
      wrap: coordinator => ({ ...coordinator, updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) } }),
    })
    await node.put('/db')
    expect((await node.put('/db/one?batch=ok', {})).status).to.equal(202)
    let answered = false
    const second = node.put('/db/two?batch=ok', {}).then(answer => { answered = true; return answer })
    await node.get('/_up')
    expect(answered).to.equal(false)
    door.open()
    expect((await second).status).to.equal(202)
    await node.stop()
  })

  it('awaits a batched write that is too large to be kept beside the others', async () => {
    const door = gate()
    const node = new MemoryNode({
      http: { batchedBytesMax: 100 },
      wrap: coordinator => ({ ...coordinator, updateDocuments: async (...call) => { await door.opened; return coordinator.updateDocuments(...call) } }),
    })
    await node.put('/db')
    expect((await node.put('/db/one?batch=ok', { text: 'x'.repeat(60) })).status).to.equal(202)
    let answered = false
    const second = node.put('/db/two?batch=ok', { text: 'x'.repeat(60) }).then(answer => { answered = true; return answer })
    await node.get('/_up')
    expect(answered).to.equal(false)
    door.open()
    expect((await second).status).to.equal(202)
    expect((await node.put('/db/three?batch=ok', { text: 'x'.repeat(60) })).status).to.equal(202)
    await node.stop()
  })

  it('logs a batched write that conflicts', async () => {
    const node = new MemoryNode()
    await node.put('/db')
    await node.put('/db/doc', {})
    expect((await node.put('/db/doc?batch=ok', { late: true })).status).to.equal(202)
    await node.stop()
    expect(node.log.lines.some(({ level, fields }) => level === 'warn' && fields['reason'] === 'Document update conflict.')).to.equal(true)
  })
})
