import { expect } from 'chai'
import { World } from '../src/world/world.ts'

describe('feeds that wait on many shards', () => {
  it('do not block reads, writes and metadata on the links, and all receive changes', async function () {
    this.timeout(120_000)
    const world = new World({ seed: 3, nodes: 2 })
    await world.run(async () => {
      await world.start(1, 2)
      await world.ready()
      const names = Array.from({ length: 34 }, (_, at) => `d${at}`)
      for (const name of names) expect((await world.send(1, 'PUT', `/${name}?q=256&n=1`)).status).to.equal(201)
      // Half of the shards are on the other node, so 4,352 calls wait on the link.
      const feeds = names.map(name => world.send(1, 'GET', `/${name}/_changes?feed=longpoll&since=now&timeout=20000`))
      await world.sleep(5_000)
      const gets = await Promise.all(Array.from({ length: 40 }, (_, at) => world.send(1, 'GET', `/d0/doc${at}`)))
      expect(new Set(gets.map(({ status }) => status))).to.deep.equal(new Set([404]))
      expect((await world.send(1, 'GET', '/d0/_all_docs')).status).to.equal(200)
      expect((await world.send(1, 'PUT', '/plain?q=8&n=2')).status).to.equal(201)
      expect((await world.send(1, 'PUT', '/plain/x', { x: 1 })).status).to.equal(201)
      await Promise.all(names.map(name => world.send(2, 'PUT', `/${name}/late`, { name })))
      for (const { status, body } of await Promise.all(feeds)) {
        expect(status).to.equal(200)
        expect((body as { results: readonly { id: string }[] }).results.map(({ id }) => id)).to.deep.equal(['late'])
      }
    }, 600_000)
  })
})
