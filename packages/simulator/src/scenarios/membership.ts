/** Nodes that join, return with an empty disk, or do not belong to the cluster. */
import assert from 'node:assert/strict'
import type { Scenario } from './scenario.ts'

export const membership: readonly Scenario[] = [
  {
    name: 'one node grows to three, and the new ones are filled',
    layout: { seeds: 1, running: 1 },
    async run(stage) {
      await stage.create('?q=4')
      const ids = await stage.fill(1, 'doc', 60)
      await stage.start(2, 3)
      for (const [index, id] of ids.entries()) await stage.expect(200, stage.read(2 + index % 2, id))
      await stage.eventually('three filled replicas of each shard', async () => {
        const reports = (await Promise.all([1, 2, 3].map(node => stage.replicas(node)))).flat()
        assert.equal(reports.length, 12)
        assert(reports.every(report => !report.filling), 'some are filling')
      })
      await stage.converge()
      await stage.crash(1)
      for (const id of ids) await stage.expect(200, stage.read(2, id))
      await stage.start(1)
    },
  },
  {
    name: 'a node that lost its disk joins again and is refilled',
    async run(stage) {
      await stage.create()
      const ids = await stage.fill(1, 'doc', 40)
      await stage.stop(3)
      await stage.cluster.wipe(3)
      await stage.start(3)
      await stage.eventually('filled replicas', async () => {
        assert.deepEqual((await stage.replicas(3)).map(report => report.filling), [false, false])
      })
      const replicas = await stage.converge()
      assert.equal(replicas.filter(({ node }) => node.startsWith('node3@'))
        .reduce((sum, replica) => sum + replica.document_count, 0), ids.length)
      await stage.expect(201, stage.write(3, 'after', { x: 1 }, '?w=3'))
    },
  },
  {
    name: 'a replica that is being filled counts towards no quorum',
    async run(stage) {
      await stage.create('?q=8')
      await stage.fill(1, 'doc', 40)
      await stage.stop(3)
      await stage.cluster.wipe(3)
      stage.cluster.slow(3)
      await stage.cluster.start(3)
      await stage.eventually('replicas to fill', async () => assert.equal((await stage.replicas(3)).length, 8))
      stage.pause(2)
      for (let index = 0; index < 8; index++) {
        const [decider] = (await stage.deciders(`new ${index}`)).filter(node => node !== 3)
        if (decider !== 1) continue
        const { status } = await stage.write(1, `new ${index}`, { index })
        // Skip the check if the replica was filled in the meantime.
        if ((await stage.replicas(3)).every(report => report.filling)) assert.equal(status, 202)
      }
      stage.continue(2)
      stage.cluster.fast(3)
      await stage.eventually(
        'filled replicas', async () => assert((await stage.replicas(3)).every(report => !report.filling)),
      )
      await stage.converge()
    },
  },
  {
    name: 'a stranger with another secret is not let in',
    layout: { nodes: 4, seeds: 3, running: 3, stranger: 4 },
    async run(stage) {
      await stage.create()
      await stage.cluster.start(4)
      await stage.eventually('the stranger to answer', () => stage.expect(404, stage.send(4, 'GET', '/_up')))
      await stage.cluster.wait(10_000)
      await stage.expect(404, stage.send(4, 'GET', '/_up'))
      const { body } = await stage.send(1, 'GET', '/_membership')
      assert.deepEqual(body.cluster_nodes.map((name: string) => name.split('@')[0]), ['node1', 'node2', 'node3'])
      await stage.expect(201, stage.write(1, 'a', { x: 1 }, '?w=3'))
      await stage.crash(4)
    },
  },
]
