/** Changes feeds, purges and attachments while nodes are away. */
import assert from 'node:assert/strict'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

const many = 400
/** Bytes of content that is large enough to be a file of its own and to be sent in several frames. */
const contentBytes = 300_000

export const keeping: readonly Scenario[] = [
  {
    name: 'a reader goes on from its token through any node, whichever node is away',
    async run(stage) {
      await stage.create('?q=4')
      let { token } = await changes(stage, 1)
      let before = 'nothing'
      for (const away of [1, 2, 3]) {
        await stage.converge()
        const settled = await changes(stage, away, token)
        await stage.crash(away)
        const [reader, writer] = stage.others(away)
        const ids = await stage.fill(writer!, `without ${away}`, 20)
        const next = await stage.eventually('the new rows', async () => {
          const read = await changes(stage, reader!, settled.token)
          assert.deepEqual(ids.filter(id => !read.ids.includes(id)), [])
          return read
        })
        // What replicas know of each other's last changes may be slightly out of date, so some late rows may be
        // repeated.
        const lately = next.ids.filter(id => id.startsWith(`without ${away}`) || id.startsWith(before))
        assert.deepEqual(next.ids.filter(id => !lately.includes(id)), [], 'what was read long ago comes again')
        token = next.token
        before = `without ${away}`
        await stage.start(away)
      }
    },
  },
  {
    name: 'a reader in the middle of its first read does not begin again when the node that it read is cut off',
    async run(stage) {
      await stage.create('?q=1')
      for (let part = 0; part < 4; part++) await stage.fill(1 + part % 3, `part ${part}`, many / 4)
      await stage.converge()
      for (const away of [1, 2, 3]) {
        // Within half a minute, the replicas learn what the others store.
        await stage.eventually(`going on without node ${away}`, async () => {
          const first = await changes(stage, away, undefined, many / 2)
          stage.partition([away], stage.others(away))
          try {
            const rest = await changes(stage, stage.others(away)[0]!, first.token)
            assert.equal(new Set([...first.ids, ...rest.ids]).size, many)
            assert(rest.ids.length < many, `all ${rest.ids.length} rows come again`)
          } finally {
            stage.heal()
          }
        })
      }
    },
  },
  {
    name: 'what was purged while a replica was away does not come back with it',
    async run(stage) {
      await stage.create()
      const [, , last] = await stage.deciders('a')
      await stage.expect(201, stage.write(1, 'a', { x: 1 }, '?w=3'))
      await stage.expect(201, stage.write(1, 'kept', { x: 1 }, '?w=3'))
      await stage.crash(last!)
      const [here] = stage.others(last!)
      const { body } = await stage.read(here!, 'a')
      const answer = await stage.expect(201, stage.send(here!, 'POST', `/${stage.database}/_purge`, { a: [body._rev] }))
      assert.deepEqual(answer.body.purged, { a: [body._rev] })
      await stage.start(last!)
      await stage.converge()
      await stage.nowhere('a')
      await stage.everywhere('kept', { x: 1 })
      assert.deepEqual((await changes(stage, last!)).ids, ['kept'])
    },
  },
  {
    name: 'a node that is alone refuses to purge a revision that it has missed, and nothing older comes back',
    async run(stage) {
      await stage.create()
      const [, , stale] = await stage.deciders('a')
      const [first] = stage.others(stale!)
      const ids = ['a', 'gone']
      const before = new Map<string, string>()
      for (const id of ids) {
        before.set(id, (await stage.expect(201, stage.write(1, id, { version: 1 }, '?w=3'))).body.rev)
      }
      stage.partition([stale!], stage.others(stale!))
      const edited = await stage.expect(201, stage.write(first!, 'a', { _rev: before.get('a'), version: 2 }))
      const deleted = await stage.expect(200, stage.remove(first!, 'gone', before.get('gone')!))
      const named = { a: [edited.body.rev], gone: [deleted.body.rev] }
      const refused = await stage.expect(503, stage.send(stale!, 'POST', `/${stage.database}/_purge`, named))
      assert.match(refused.body.reason, /^Nothing was purged/)
      stage.heal()
      await stage.converge()
      await stage.everywhere('a', { version: 2 })
      const { body } = await stage.expect(201, stage.send(stale!, 'POST', `/${stage.database}/_purge`, named))
      assert.deepEqual(body.purged, named)
      await stage.converge()
      for (const id of ids) await stage.nowhere(id)
    },
  },
  {
    name: 'an attachment that was written while a node was away is read there when it is alone',
    async run(stage) {
      await stage.create()
      await stage.crash(3)
      const content = 'all of it '.repeat(contentBytes / 10)
      const inline = { content_type: 'application/octet-stream', data: Buffer.from(content).toString('base64') }
      await stage.expect(201, stage.write(1, 'a', {
        _attachments: { large: inline, small: { ...inline, data: Buffer.from('some').toString('base64') } },
      }))
      await stage.start(3)
      await stage.converge()
      await stage.crash(1)
      await stage.crash(2)
      for (const [name, wanted] of [['large', content], ['small', 'some']] as const) {
        const { body } = await stage.expect(200, stage.send(3, 'GET', `/${stage.database}/a/${name}`))
        assert.equal(body, wanted, name)
      }
      await stage.start(1, 2)
    },
  },
]

async function changes(
  stage: Stage, node: number, since?: string, limit?: number,
): Promise<{ readonly ids: readonly string[]; readonly token: string }> {
  const { body } = await stage.expect(200, stage.send(
    node, 'GET', `/${stage.database}/_changes?since=${since ?? 0}${limit === undefined ? '' : `&limit=${limit}`}`,
  ))
  return { ids: body.results.map(({ id }: { readonly id: string }) => id), token: body.last_seq }
}
