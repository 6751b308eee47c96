/** Nodes that run but cannot reach each other. */
import assert from 'node:assert/strict'
import type { Scenario } from './scenario.ts'

export const partitions: readonly Scenario[] = [
  {
    name: 'both sides of a partition edit one document, and keep every branch',
    async run(stage) {
      await stage.create()
      await stage.expect(201, stage.write(1, 'a', { round: 0 }, '?w=3'))
      stage.partition([1], [2, 3])
      for (let round = 1; round <= 3; round++) {
        for (const node of [1, 2]) {
          const { body } = await stage.expect(200, stage.read(node, 'a'))
          await stage.expect([201, 202], stage.write(node, 'a', { ...body, round, by: node }))
        }
      }
      stage.heal()
      await stage.converge()
      const [first, ...more] = await Promise.all([1, 2, 3].map(node => stage.leaves(node, 'a')))
      assert.equal(first!.length, 2)
      for (const revision of first!) assert.match(revision, /^4-/)
      for (const leaves of more) assert.deepEqual(leaves, first)
    },
  },
  {
    name: 'a minority neither creates a database nor forgets that it deleted one',
    async run(stage) {
      await stage.create()
      stage.partition([1], [2, 3])
      await stage.expect(503, stage.send(1, 'PUT', `/${stage.database}-2`))
      await stage.expect(202, stage.send(1, 'DELETE', `/${stage.database}`))
      await stage.expect(404, stage.send(1, 'GET', `/${stage.database}`))
      await stage.expect(200, stage.send(2, 'GET', `/${stage.database}`))
      stage.heal()
      for (const node of [1, 2, 3]) {
        await stage.eventually('the deletion', () => stage.expect(404, stage.send(node, 'GET', `/${stage.database}`)))
      }
    },
  },
  {
    name: 'the leader of the metadata log is cut off: the others elect one and go on',
    async run(stage) {
      const leader = await stage.leader()
      const [other, third] = stage.others(leader)
      stage.partition([leader], [other!, third!])
      await stage.eventually(
        'a new leader', () => stage.expect([201, 412], stage.send(other!, 'PUT', `/${stage.database}?q=2`)),
      )
      await stage.expect(503, stage.send(leader, 'PUT', `/${stage.database}-2?q=2`))
      stage.heal()
      await stage.eventually(
        'the old leader to follow', () => stage.expect(200, stage.send(leader, 'GET', `/${stage.database}`)),
      )
      await stage.expect(201, stage.write(leader, 'a', { x: 1 }))
      await stage.converge()
      await stage.everywhere('a', { x: 1 })
    },
  },
  {
    name: 'users get databases while the leader of the metadata log is cut off, and after it has crashed',
    async run(stage) {
      const option = '/_node/_local/_config/couch_peruser/enable'
      await stage.expect(200, stage.send(1, 'PUT', option, 'true'))
      const register = (node: number, name: string): Promise<unknown> => stage.eventually('a new user', () =>
        stage.expect([201, 409], stage.send(node, 'PUT', `/_users/org.couchdb.user:${name}`, {
          type: 'user', name, roles: [],
        })))
      const exists = (node: number, name: string): Promise<unknown> =>
        stage.eventually(`the database of ${name} on node ${node}`, async () => {
          const path = `/userdb-${Buffer.from(name).toString('hex')}/_security`
          assert.deepEqual((await stage.expect(200, stage.send(node, 'GET', path))).body.members.names, [name])
        })
      await register(1, 'before')
      await exists(1, 'before')
      const leader = await stage.leader()
      const others = stage.others(leader)
      stage.partition([leader], others)
      await register(others[0]!, 'during')
      for (const node of others) await exists(node, 'during')
      stage.heal()
      await exists(leader, 'during')
      const next = await stage.leader()
      await register(next, 'after')
      await stage.crash(next)
      for (const node of stage.others(next)) await exists(node, 'after')
      await stage.start(next)
      await exists(next, 'after')
      await stage.expect(200, stage.send(1, 'DELETE', option))
    },
  },
  {
    name: 'branches that replicators wrote on both sides of a partition (new_edits=false) converge',
    async run(stage) {
      await stage.create()
      stage.partition([1], [2, 3])
      const branch = (node: number, hash: string) =>
        stage.write(
          node, 'a', { _rev: `2-${hash}`, _revisions: { start: 2, ids: [hash, 'f'.repeat(32)] }, by: node },
          '?new_edits=false',
        )
      const [left, right] = ['a'.repeat(32), 'b'.repeat(32)]
      await stage.expect([201, 202], branch(1, left!))
      await stage.expect([201, 202], branch(2, right!))
      stage.heal()
      await stage.converge()
      for (const node of [1, 2, 3]) assert.deepEqual(await stage.leaves(node, 'a'), [`2-${right}`, `2-${left}`])
      await stage.everywhere('a', { by: 2 })
    },
  },
  {
    name: 'local documents that both sides of a partition wrote end up equal, the last writer\'s',
    async run(stage) {
      await stage.create()
      await stage.expect(201, stage.write(1, '_local/checkpoint', { at: 1 }, '?w=3'))
      stage.partition([1], [2, 3])
      await stage.expect([201, 202], stage.write(1, '_local/checkpoint', { _rev: '0-1', at: 2 }))
      await stage.cluster.wait(500)
      await stage.expect([201, 202], stage.write(2, '_local/checkpoint', { _rev: '0-1', at: 3 }))
      stage.heal()
      for (const node of [1, 2, 3]) {
        await stage.eventually('the last version', async () => {
          assert.equal((await stage.read(node, '_local/checkpoint', '?r=1')).body.at, 3)
        })
      }
    },
  },
  {
    name: 'a read of all replicas sees a write that only one of them has, and repairs it',
    async run(stage) {
      await stage.create()
      stage.partition([1], [2, 3])
      await stage.expect(202, stage.write(1, 'a', { x: 1 }))
      stage.heal()
      await stage.linked()
      assert.equal((await stage.expect(200, stage.read(2, 'a', '?r=3'))).body.x, 1)
      await stage.converge()
      await stage.everywhere('a', { x: 1 })
    },
  },
  {
    name: 'two nodes create one name at the same instant: one of them does',
    async run(stage) {
      const answers = await Promise.all([1, 2, 3].map(node => stage.send(node, 'PUT', `/${stage.database}?q=2`)))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 412, 412])
      const maps = await Promise.all([1, 2, 3].map(node => stage.send(node, 'GET', `/${stage.database}/_shards`)))
      for (const { body } of maps) assert.deepEqual(body, maps[0]!.body)
      await stage.expect(201, stage.write(3, 'a', { x: 1 }))
      await stage.converge()
    },
  },
  {
    name: 'clients that edit one document through all nodes leave one branch',
    async run(stage) {
      await stage.create()
      let accepted = 0
      const editor = async (node: number) => {
        for (let edit = 0; edit < 8; edit++) {
          const { status, body } = await stage.read(node, 'a')
          const current = status === 200 ? body : { value: 0 }
          const answer = await stage.expect(
            [201, 409], stage.write(node, 'a', { ...current, value: current.value + 1, by: `${node} ${edit}` }),
          )
          if (answer.status === 201) accepted++
        }
      }
      await Promise.all([1, 2, 3, 1, 2, 3].map(editor))
      await stage.converge()
      assert.equal((await stage.leaves(1, 'a')).length, 1)
      await stage.everywhere('a', { value: accepted })
    },
  },
]
