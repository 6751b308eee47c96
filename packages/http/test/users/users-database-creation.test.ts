import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

const idOf = (name: string): string => `org.couchdb.user:${name}`
const pathOf = (name: string): string => `/_users/${idOf(name)}`
const userOf = (name: string, password: string): object => ({ name, type: 'user', roles: [], password })

describe('the users database is created', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode()
    node.configuration.put('chttpd_auth', 'iterations', '2')
  })
  afterEach(() => node.stop())

  it('not because of a request that fails', async () => {
    const json = { 'content-type': 'application/json' }
    const text = { 'content-type': 'text/plain' }
    const good = userOf('ann', 'x')
    const failing: Record<string, () => Promise<Answer>> = {
      'broken JSON': () => node.put(pathOf('ann'), '{', json),
      'an id that is not allowed': () => node.put('/_users/_nonsense', {}),
      'an unknown path': () => node.put('/_users/_design/d/_view/x', {}),
      'no roles': () => node.put(pathOf('ann'), { name: 'ann', type: 'user', password: 'x' }),
      'a password that is no text': () => node.put(pathOf('ann'), { ...good, password: 5 }),
      'a revision that nobody has': () => node.put(`${pathOf('ann')}?rev=1-ab`, good),
      'another id': () => node.put('/_users/ann', good),
      'a stub': () => node.put(pathOf('ann'), { ...good, _attachments: { a: { stub: true, revpos: 1 } } }),
      'a document without _rev': () => node.put(`${pathOf('ann')}?new_edits=false`, good),
      'a history of no user': () => node.put(`${pathOf('ann')}?new_edits=false`, { _rev: '1-ab', name: 'ann' }),
      'a form': () => node.post('/_users', 'x', text),
      'a posted document of no user': () => node.post('/_users', { name: 'ann' }),
      'bulk documents of no users': () => node.post('/_users/_bulk_docs', { docs: [{ a: 1 }, { _id: 'x' }] }),
      'broken bulk documents': () => node.post('/_users/_bulk_docs', '[', json),
      'a design document that does not compile': () =>
        node.put('/_users/_design/d', { views: { v: { map: 'function (' } } }),
      'a deletion': () => node.delete(`${pathOf('ann')}?rev=1-ab`),
      'a deletion of a local document': () => node.delete('/_users/_local/x'),
      'a copy': () => node.request('COPY', pathOf('ann'), undefined, { destination: 'x' }),
      'a purge': () => node.post('/_users/_purge', { [idOf('ann')]: ['1-ab'] }),
      'a security object that must not be changed': () => node.put('/_users/_security', {}),
      'a wrong limit': () => node.put('/_users/_revs_limit', '"x"', json),
      'times': () => node.delete('/_users/_time_seq'),
      'an update function': () => node.put('/_users/_design/d/_update/u/x', {}),
      'an attachment of nothing': () => node.delete(`${pathOf('ann')}/a?rev=1-ab`),
      'a method that does not exist': () => node.request('PUT', '/_users/_find', {}),
    }
    for (const [what, send] of Object.entries(failing)) {
      const { status, json: body } = await send()
      const rows = Array.isArray(body) ? body : []
      expect(status >= 400 && status < 500 || (rows.length > 0 && rows.every(row => row.error)), `${what}: ${status}`)
        .to.equal(true)
      expect((await node.get('/_users')).status, what).to.equal(404)
    }
    expect(node.audited.filter(({ event }) => event === 'database_created')).to.deep.equal([])
  })

  it('because of any write that succeeds', async () => {
    const attached = { ...userOf('ann', 'x'), _attachments: { a: { data: 'eA==', content_type: 'text/plain' } } }
    const writing: (() => Promise<Answer>)[] = [
      () => node.put(pathOf('ann'), userOf('ann', 'x')),
      () => node.put(pathOf('ann'), attached),
      () => node.put(`${pathOf('ann')}?new_edits=false`, { ...userOf('ann', 'x'), _rev: '1-ab' }),
      () => node.post('/_users', { _id: idOf('ann'), ...userOf('ann', 'x') }),
      () => node.post('/_users/_bulk_docs', { docs: [{ a: 1 }, { _id: idOf('ann'), ...userOf('ann', 'x') }] }),
      () => node.put('/_users/_design/d', { views: { v: { map: '() => {}' } } }),
      () => node.put('/_users/_local/x', { a: 1 }),
      () => node.put('/_users/_revs_limit', '10'),
    ]
    for (const [index, send] of writing.entries()) {
      const { status, text } = await send()
      expect([200, 201], text).to.include(status)
      expect((await node.get('/_users')).status, String(index)).to.equal(200)
      await node.control.deleteDatabase('_users')
    }
    const together = await Promise.all(['a', 'b', 'c'].map(name => node.put(pathOf(name), userOf(name, 'x'))))
    expect(together.map(({ status }) => status)).to.deep.equal([201, 201, 201])
  })
})
