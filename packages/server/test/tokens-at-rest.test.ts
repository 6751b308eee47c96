import { expect } from 'chai'
import { MemoryCluster } from './memory-cluster.ts'

/** Returns every token for the current position of a database, with the answer that contained it. */
async function tokens(cluster: MemoryCluster, numbers: readonly number[]): Promise<Map<string, string[]>> {
  const found: [string, string][] = []
  for (const number of numbers) {
    const get = async (path: string) => (await cluster.send(number, 'GET', path)).body
    const { results, last_seq: last } = await get('/db/_changes')
    found.push([results.at(-1).seq, `last row of ${number}`], [last, `last_seq of ${number}`])
    found.push([(await get('/db')).update_seq, `GET /db of ${number}`])
    found.push([(await get('/db/_all_docs?update_seq=true&limit=1')).update_seq, `_all_docs of ${number}`])
    found.push([(await get('/db/_changes?since=now')).last_seq, `since=now of ${number}`])
    for (const other of numbers) {
      found.push([
        (await cluster.send(other, 'GET', `/db/_changes?since=${last}`)).body.last_seq, `from ${number} on ${other}`,
      ])
    }
    found.push([(await get('/db/_changes?feed=longpoll&since=now&timeout=50')).last_seq, `longpoll of ${number}`])
  }
  const places = new Map<string, string[]>()
  for (const [token, where] of found) places.set(token, [...places.get(token) ?? [], where])
  return places
}

/** Waits until all tokens are equal, and returns the token. */
async function oneToken(cluster: MemoryCluster, numbers: readonly number[]): Promise<string> {
  let found = new Map<string, string[]>()
  for (let waited = 0; waited < 20_000 && found.size !== 1; waited += 1000) {
    await cluster.clock.advance(1000)
    found = await tokens(cluster, numbers)
  }
  expect([...found.values()], 'where one token was found, and another').to.have.length(1)
  return [...found.keys()][0]!
}

describe('tokens of a database at rest', function () {
  this.timeout(60_000)

  for (const [count, query] of [
    [1, 'q=1'], [1, 'q=4'], [3, 'q=1'], [3, 'q=4'], [3, 'q=2&n=2'], [4, 'q=4&n=3'],
  ] as const) {
    it(`are the same in all answers of ${count} nodes, ${query}, and after restarts`, async () => {
      const numbers = Array.from({ length: count }, (_, index) => index + 1)
      const cluster = new MemoryCluster(count)
      for (const number of numbers) await cluster.start(number)
      await cluster.ready()
      await cluster.send(1, 'PUT', `/db?${query}`)
      const write = async (from: number, to: number, nodes: readonly number[]): Promise<void> => {
        for (let id = from; id < to; id++) {
          expect((await cluster.send(nodes[id % nodes.length]!, 'PUT', `/db/d${id}`, { id })).status).to.be.oneOf([
            201, 202,
          ])
        }
      }
      await write(0, 20, numbers)
      const first = await oneToken(cluster, numbers)
      if (count > 2) {
        // From here on, replicas number their changes differently.
        cluster.crash(count)
        await write(20, 30, numbers.slice(0, -1))
        await cluster.start(count)
        await cluster.ready()
        await write(30, 35, numbers)
      } else {
        await write(20, 25, numbers)
      }
      const second = await oneToken(cluster, numbers)
      expect(second).not.to.equal(first)
      for (const number of numbers) {
        await cluster.stop(number)
        await cluster.start(number)
      }
      await cluster.ready()
      expect(await oneToken(cluster, numbers)).to.equal(second)
      const seen = (await cluster.send(1, 'GET', `/db/_changes?since=${first}`)).body.results.map(({ id }: {
        readonly id: string
      }) =>
        id)
        .sort()
      expect(seen).to.deep.equal(Array.from({ length: count > 2 ? 15 : 5 }, (_, index) => `d${20 + index}`))
      await cluster.close()
    })
  }
})
