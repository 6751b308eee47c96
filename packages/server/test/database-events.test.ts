import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

interface EventRow { readonly db_name: string; readonly type: string }

async function running(count: number): Promise<MemoryCluster> {
  const cluster = new MemoryCluster(count)
  for (let number = 1; number <= count; number++) await cluster.start(number)
  await cluster.ready()
  return cluster
}

async function read(
  cluster: MemoryCluster, number: number, since = '0',
): Promise<{ readonly rows: string[]; readonly since: string }> {
  const { body } = await cluster.send(number, 'GET', `/_db_updates?since=${since}`)
  return { rows: body.results.map(({ type, db_name }: EventRow) => `${type} ${db_name}`), since: body.last_seq }
}

describe('events of databases', () => {
  it('are the same on every node, and can be continued on another node', async () => {
    const cluster = await running(3)
    await read(cluster, 1)
    await cluster.send(2, 'PUT', '/db?q=2')
    await cluster.send(3, 'PUT', '/db/a', {})
    for (const number of [1, 2, 3]) {
      await cluster.until(
        `both on ${number}`, async () => (await read(cluster, number)).rows.sort().join() === 'created db,updated db',
      )
    }
    await cluster.clock.advance(3000)
    const { since } = await read(cluster, 1)
    cluster.crash(1)
    await cluster.send(2, 'PUT', '/db/b', {})
    await cluster.until('the update', async () => (await read(cluster, 3, since)).rows.includes('updated db'))
    await cluster.until(
      'the metadata log to have a leader', async () => (await cluster.send(2, 'DELETE', '/db')).status === 200,
    )
    await cluster.until('the deletion', async () => (await read(cluster, 2, since)).rows.includes('deleted db'))
    await cluster.start(1)
    await cluster.ready()
    await cluster.until(
      'the same on the node that was away', async () => (await read(cluster, 1, since)).rows.includes('deleted db'),
    )
    await cluster.close()
    expect(cluster.clock.pendingTimers).to.equal(0)
  })

  it('come in the order in which they happened, also when they are recorded together', async () => {
    const cluster = await running(1)
    await read(cluster, 1)
    for (const methods of [['PUT'], ['DELETE', 'PUT', 'DELETE'], ['PUT', 'DELETE', 'PUT']]) {
      for (const method of methods) await cluster.send(1, method, '/db')
      await cluster.clock.advance(3000)
      const last = methods.at(-1) === 'PUT' ? 'created db' : 'deleted db'
      expect((await read(cluster, 1)).rows.at(-1), methods.join()).to.equal(last)
    }
    await cluster.close()
  })

  it('are one row for one write, within half a second, whichever nodes take the write and the reading', async () => {
    const cluster = await running(3)
    await cluster.send(1, 'PUT', '/db?q=4')
    await read(cluster, 1)
    await cluster.clock.advance(12_000)
    let { since } = await read(cluster, 1)
    for (let round = 0; round < 6; round++) {
      const docs = Array.from({ length: round % 2 === 0 ? 1 : 20 }, (_, index) => ({ _id: `${round}-${index}` }))
      expect((await cluster.send(1 + round % 3, 'POST', '/db/_bulk_docs', { docs })).status).to.equal(201)
      await cluster.clock.advance(450)
      const soon = await read(cluster, 1 + (round + 1) % 3, since)
      expect(soon.rows, `round ${round}, after 450 ms`).to.deep.equal(['updated db'])
      await cluster.clock.advance(12_000)
      const later = await read(cluster, 1 + (round + 2) % 3, soon.since)
      expect(later.rows, `round ${round}, after 12 s`).to.deep.equal([])
      since = later.since
    }
    await cluster.close()
  })

  it('are recorded by another node when the responsible one crashes before', async () => {
    for (const lost of [1, 2, 3]) {
      const cluster = await running(3)
      await cluster.send(1, 'PUT', '/db?q=1')
      await read(cluster, 1)
      await cluster.clock.advance(3000)
      const other = 1 + lost % 3
      const { since } = await read(cluster, other)
      await cluster.send(other, 'PUT', '/db/a', {})
      cluster.crash(lost)
      await cluster.until(
        `the row although node ${lost} is gone`,
        async () => (await read(cluster, other, since)).rows.includes('updated db'),
      )
      await cluster.close()
    }
  })

  it('are not lost when every node crashes before they are recorded', async () => {
    const cluster = await running(1)
    await cluster.send(1, 'PUT', '/old?q=2')
    await read(cluster, 1)
    await cluster.clock.advance(3000)
    const { since, rows } = await read(cluster, 1)
    expect(rows).to.deep.equal(['created old'])
    await cluster.send(1, 'PUT', '/new?q=2')
    await cluster.send(1, 'PUT', '/old/a', {})
    await cluster.send(1, 'PUT', '/short?q=1')
    await cluster.send(1, 'DELETE', '/short')
    cluster.crash(1)
    await cluster.start(1)
    await cluster.ready()
    const wanted = ['created new', 'updated old']
    await cluster.until('what was not recorded', async () => {
      const found = (await read(cluster, 1, since)).rows
      return wanted.every(each => found.includes(each))
    })
    await cluster.close()
  })
})
