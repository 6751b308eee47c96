/** Nodes that crash or stop, are away for a while, and return. */
import assert from 'node:assert/strict'
import type { Scenario } from './scenario.ts'

export const absences: readonly Scenario[] = [
  {
    name: 'a coordinator dies between the replies to a write',
    async run(stage) {
      await stage.create()
      const [decider, coordinator, silent] = await stage.deciders('a')
      stage.pause(silent!)
      const answer = stage.write(coordinator!, 'a', { x: 1 }, '?w=3').catch(() => null)
      await stage.eventually('the first replies', () => stage.expect(200, stage.read(decider!, 'a')))
      await stage.crash(coordinator!)
      stage.continue(silent!)
      assert.equal(await answer, null)
      await stage.start(coordinator!)
      await stage.converge()
      await stage.everywhere('a', { x: 1 })
      assert.equal((await stage.leaves(1, 'a')).length, 1)
    },
  },
  {
    name: 'the deciding replica dies after it decided alone, and both edits are kept',
    async run(stage) {
      await stage.create()
      const [decider] = await stage.deciders('a')
      const [other] = stage.others(decider!)
      stage.partition([decider!], stage.others(decider!))
      const alone = await stage.expect(202, stage.write(decider!, 'a', { by: 'decider' }))
      await stage.crash(decider!)
      const meanwhile = await stage.expect(201, stage.write(other!, 'a', { by: 'stand-in' }))
      stage.heal()
      await stage.start(decider!)
      await stage.converge()
      for (const node of [1, 2, 3]) {
        assert.deepEqual([...await stage.leaves(node, 'a')].sort(), [alone.body.rev, meanwhile.body.rev].sort())
      }
    },
  },
  {
    name: 'a node returns after a week of writes',
    async run(stage) {
      await stage.create()
      await stage.crash(3)
      const kept: string[] = []
      for (let day = 1; day <= 7; day++) {
        const [first, ...rest] = await stage.fill(1 + day % 2, `day ${day}`, 30)
        const { body } = await stage.read(1, first!)
        await stage.expect(200, stage.remove(2, first!, body._rev))
        const edited = await stage.read(2, rest[0]!)
        await stage.expect(201, stage.write(1, rest[0]!, { ...edited.body, day }))
        kept.push(...rest)
        await stage.cluster.wait(600_000)
      }
      await stage.start(3)
      const replicas = await stage.converge()
      const here = replicas.filter(({ node }) => node.startsWith('node3@'))
      assert.equal(here.reduce((sum, replica) => sum + replica.document_count, 0), kept.length)
      assert.equal(here.reduce((sum, replica) => sum + replica.deleted_count, 0), 7)
    },
  },
  {
    name: 'five nodes, two die: the others go on with documents and databases',
    layout: { nodes: 5 },
    async run(stage) {
      await stage.create('?q=8')
      const before = await stage.fill(1, 'before', 40)
      await stage.crash(4, 5)
      const during: string[] = []
      for (let index = 0; index < 20; index++) {
        await stage.expect([201, 202], stage.write(1 + index % 3, `during ${index}`, { index }))
        during.push(`during ${index}`)
      }
      for (const id of before) await stage.expect(200, stage.read(2, id))
      await stage.expect(201, stage.send(2, 'PUT', `/${stage.database}-2?q=2`))
      await stage.start(4, 5)
      await stage.converge()
      for (const id of [...before, ...during]) await stage.everywhere(id, {})
      await stage.expect(200, stage.send(5, 'GET', `/${stage.database}-2`))
    },
  },
  {
    name: 'two of three nodes die: the last one reads, and accepts writes with 202',
    async run(stage) {
      await stage.create()
      await stage.expect(201, stage.write(1, 'a', { x: 1 }, '?w=3'))
      await stage.crash(2, 3)
      await stage.expect(200, stage.read(1, 'a'))
      await stage.expect(202, stage.write(1, 'b', { x: 2 }))
      await stage.expect(503, stage.send(1, 'PUT', `/${stage.database}-2`))
      await stage.start(2, 3)
      await stage.converge()
      await stage.everywhere('b', { x: 2 })
    },
  },
  {
    name: 'all nodes die at once and are back with every document',
    async run(stage) {
      await stage.create()
      const ids = await stage.fill(2, 'doc', 50)
      await stage.crash(1, 2, 3)
      await stage.start(3, 2, 1)
      await stage.converge()
      for (const id of ids) await stage.everywhere(id, {})
    },
  },
  {
    name: 'nodes are restarted one after the other under writes, and nothing acknowledged is lost',
    async run(stage) {
      await stage.create()
      const acknowledged: string[] = []
      for (const node of [1, 2, 3]) {
        const others = stage.others(node)
        await stage.stop(node)
        for (let index = 0; index < 10; index++) {
          const id = `without ${node} ${index}`
          await stage.expect(201, stage.write(others[index % 2]!, id, { index }))
          acknowledged.push(id)
        }
        await stage.start(node)
        await stage.linked()
      }
      await stage.converge()
      for (const id of acknowledged) await stage.everywhere(id, {})
    },
  },
  {
    name: 'a tombstone spreads to a node that was away',
    async run(stage) {
      await stage.create()
      const { body } = await stage.expect(201, stage.write(1, 'a', { x: 1 }, '?w=3'))
      await stage.crash(3)
      await stage.expect(200, stage.remove(1, 'a', body.rev))
      await stage.start(3)
      await stage.converge()
      await stage.nowhere('a')
      await stage.expect(201, stage.write(3, 'a', { x: 2 }))
      await stage.converge()
      await stage.everywhere('a', { x: 2 })
    },
  },
  {
    name: 'a database is deleted and created again while a node is away, which then shows nothing old',
    async run(stage) {
      await stage.create()
      const old = await stage.fill(1, 'old', 10)
      await stage.crash(3)
      await stage.expect(200, stage.send(1, 'DELETE', `/${stage.database}`))
      await stage.create('?q=2', 2)
      await stage.expect(201, stage.write(2, 'new', { x: 1 }))
      await stage.start(3)
      await stage.converge()
      for (const id of old) await stage.nowhere(id)
      await stage.everywhere('new', { x: 1 })
    },
  },
  {
    name: 'a decider that was away decides nothing before it knows what it missed',
    async run(stage) {
      await stage.create('?q=1')
      const [decider, ...others] = await stage.deciders('doc 0')
      await stage.crash(decider!)
      await stage.fill(others[0]!, 'doc', 30)
      // The others ask the decider as soon as they have links with it, which is before it serves clients itself.
      let serves = false
      const started = stage.start(decider!).finally(() => { serves = true })
      for (let index = 0; index < 30 || !serves; index++) {
        await stage.expect(409, stage.write(others[index % 2]!, `doc ${index % 30}`, { by: 'latecomer' }))
      }
      await started
      await stage.converge()
      for (let index = 0; index < 30; index++) assert.equal((await stage.leaves(1, `doc ${index}`)).length, 1)
    },
  },
  {
    name: 'w=3 with a node away is accepted with 202, and the node has it later',
    async run(stage) {
      await stage.create()
      await stage.crash(2)
      await stage.expect(202, stage.write(1, 'a', { x: 1 }, '?w=3'))
      await stage.start(2)
      await stage.converge()
      await stage.everywhere('a', { x: 1 })
    },
  },
]
