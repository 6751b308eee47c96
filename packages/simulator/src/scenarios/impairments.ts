/** Nodes that run with a problem: slow, paused, with a full or damaged disk, or with a wrong clock. */
import assert from 'node:assert/strict'
import type { Scenario } from './scenario.ts'

/** Enough documents that an anti-entropy pass transfers them in several batches. */
const lateDocuments = 400

export const impairments: readonly Scenario[] = [
  {
    name: 'a paused node stalls neither writes nor reads',
    async run(stage) {
      await stage.create()
      stage.pause(2)
      for (let index = 0; index < 10; index++) {
        await stage.expect(201, stage.write(1 + 2 * (index % 2), `doc ${index}`, { index }))
        await stage.expect(200, stage.read(3, `doc ${index}`))
      }
      stage.continue(2)
      await stage.ready(2)
      await stage.converge()
      await stage.everywhere('doc 9', { index: 9 })
    },
  },
  {
    name: 'of two clients that claim a document while its decider is paused, one succeeds',
    async run(stage) {
      await stage.create('?q=1')
      for (let round = 0; round < 3; round++) {
        const { body } = await stage.expect(201, stage.write(1, `job ${round}`, { claimed: false }, '?w=3'))
        const [decider, ...others] = await stage.deciders(`job ${round}`)
        stage.pause(decider!)
        const answers = await Promise.all(
          others.map(node => stage.write(node, `job ${round}`, { _rev: body.rev, claimed: true })),
        )
        stage.continue(decider!)
        const claimed = answers.filter(({ status }) => status < 300)
        assert.equal(claimed.length, 1, JSON.stringify(answers))
        await stage.ready(decider!)
        await stage.linked()
      }
      await stage.converge()
      await stage.everywhere('job 2', { claimed: true })
    },
  },
  {
    name: 'a slow replica is waited for only by those who ask for it',
    async run(stage) {
      await stage.create()
      stage.cluster.slow(3)
      for (let index = 0; index < 6; index++) {
        await stage.expect(201, stage.write(1 + index % 2, `doc ${index}`, { index }))
      }
      await stage.expect([201, 202], stage.write(1, 'all', { x: 1 }, '?w=3'))
      stage.cluster.fast(3)
      await stage.converge()
      await stage.everywhere('all', { x: 1 })
    },
  },
  {
    name: 'a node with a full disk still reads, the others write for it, and it catches up',
    needs: ['fill disk'],
    async run(stage) {
      await stage.create()
      await stage.expect(201, stage.write(1, 'before', { x: 1 }, '?w=3'))
      stage.cluster.fillDisk(3)
      for (let index = 0; index < 6; index++) {
        await stage.expect(201, stage.write(1 + index % 3, `doc ${index}`, { index }))
      }
      await stage.expect(202, stage.write(1, 'short', { x: 1 }, '?w=3'))
      await stage.expect(200, stage.read(3, 'before', '?r=1'))
      stage.cluster.freeDisk(3)
      await stage.converge()
      await stage.everywhere('short', { x: 1 })
    },
  },
  {
    name: 'a decider whose disk was full takes no edit of an old revision once there is room again',
    needs: ['fill disk'],
    async run(stage) {
      await stage.create('?q=1')
      const [decider] = await stage.deciders('doc 0')
      const [first, second] = stage.others(decider!)
      const ids = Array.from({ length: 6 }, (_, index) => `doc ${index}`)
      const old = await Promise.all(ids.map(id => stage.expect(201, stage.write(1, id, { version: 1 }, '?w=3'))))
      stage.cluster.fillDisk(decider!)
      for (const [index, id] of ids.entries()) {
        await stage.expect(201, stage.write(first!, id, { _rev: old[index]!.body.rev, version: 2 }))
      }
      stage.cluster.freeDisk(decider!)
      await Promise.all(
        ids.map((id, index) =>
          stage.expect(409, stage.write(second!, id, { _rev: old[index]!.body.rev, version: 'stale' }))),
      )
      await stage.converge()
      for (const id of ids) assert.equal((await stage.leaves(first!, id)).length, 1, id)
    },
  },
  {
    name: 'a clock that jumps by an hour and back costs neither documents nor local documents',
    needs: ['jump clock'],
    async run(stage) {
      await stage.create()
      const hour = 3_600_000
      stage.cluster.jumpClock(2, hour)
      const first = await stage.expect(201, stage.write(2, 'a', { x: 1 }))
      await stage.expect(201, stage.write(2, '_local/checkpoint', { at: 1 }))
      stage.cluster.jumpClock(2, -2 * hour)
      await stage.expect(201, stage.write(1, 'a', { _rev: first.body.rev, x: 2 }))
      await stage.expect(201, stage.write(1, '_local/checkpoint', { _rev: '0-1', at: 2 }))
      await stage.expect(201, stage.write(2, '_local/checkpoint', { _rev: '0-2', at: 3 }))
      stage.cluster.jumpClock(2, hour)
      await stage.converge()
      await stage.everywhere('a', { x: 2 })
      for (const node of [1, 2, 3]) {
        await stage.eventually(
          'the last version',
          async () => assert.equal((await stage.read(node, '_local/checkpoint', '?r=1')).body.at, 3),
        )
      }
    },
  },
  {
    name: 'a replica that is rebuilt during a slow pass gets back what its disk had lost',
    layout: { nodes: 2 },
    needs: ['damage record'],
    async run(stage) {
      await stage.create('?q=1')
      await stage.expect(201, stage.write(1, 'damaged', { x: 1 }, '?w=2'))
      await stage.converge()
      // Wait until the checkpoint covers what node 1 had sent before the pass.
      await stage.eventually(
        'checkpoints', async () => assert.equal(await stage.metric(1, 'sectional_replication_lag_seconds'), 0),
      )
      stage.partition([1], [2])
      await stage.eventually(
        'the link to be given up',
        async () => assert.equal((await stage.send(1, 'GET', '/_membership')).body.all_nodes.length, 1),
      )
      await stage.fill(1, 'late', lateDocuments)
      stage.heal()
      stage.cluster.slow(2)
      const arrived = async (count: number): Promise<void> => {
        const [replica] = await stage.replicas(2)
        assert(replica!.document_count > count, `${replica!.document_count} documents`)
      }
      await stage.eventually('the pass to begin', () => arrived(1))
      stage.cluster.damageDocument(2, 'damaged')
      // The replica's next report finds the damage. A read would find it too, and also restore the document.
      await stage.eventually('the rest of the pass', () => arrived(lateDocuments - 1))
      stage.cluster.fast(2)
      await stage.converge()
      await stage.everywhere('damaged', { x: 1 })
    },
  },
]
