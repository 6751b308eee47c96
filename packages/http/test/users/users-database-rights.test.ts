import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const nobody = { authorization: '' }
const bob = { authorization: basic('bob', 'pw') }
const idOf = (name: string): string => `org.couchdb.user:${name}`
const notServerAdmin = 'You are not a server admin.'
const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]

describe('in a database of users that is open to all, others than administrators', () => {
  let node: MemoryNode
  let revision: string
  beforeEach(async () => {
    node = new MemoryNode()
    node.configuration.put('couchdb', 'users_db_security_editable', 'true')
    await node.put(`/_users/${idOf('bob')}`, { type: 'user', name: 'bob', roles: [], password: 'pw' })
    const { json } = await node.get(`/_users/${idOf('bob')}`)
    revision = json._rev
    expect((await node.put('/_users/_security', {})).status).to.equal(200)
    expect((await node.put('/_users/_local/checkpoint', { seq: 7 })).status).to.equal(201)
    // A document that the rules of users would accept as that of bob.
    expect((await node.put('/_users/_design/secret', { ...json, _rev: undefined, field: 'top' })).status).to.equal(201)
  })
  afterEach(() => node.stop())

  const copy = (source: string, destination: string, who: Record<string, string>): Promise<Answer> => (
    node.request('COPY', `/_users/${source}`, undefined, { ...who, destination })
  )

  for (const [who, headers] of Object.entries({ 'a user': bob, 'an anonymous client': nobody })) {
    it(`cannot write local documents on any path: ${who}`, async () => {
      const local = { _id: '_local/checkpoint', seq: 0 }
      const answers = [
        await node.post('/_users', local, headers), await node.put('/_users/_local/checkpoint', local, headers),
        await node.put('/_users/_local%2Fcheckpoint', local, headers),
        await node.delete('/_users/_local/checkpoint', headers),
        await copy('_local/checkpoint', '_local/other', headers),
      ]
      for (const answer of answers) expect(outcome(answer)).to.deep.equal([401, notServerAdmin])
      for (const body of [{ docs: [local] }, { docs: [{ ...local, _rev: '0-1' }], new_edits: false }]) {
        const bulk = await node.post('/_users/_bulk_docs', body, headers)
        expect(bulk.json).to.have.length(1)
        expect(bulk.json[0]).to.include({ id: '_local/checkpoint', error: 'unauthorized', reason: notServerAdmin })
      }
      expect((await node.get('/_users/_local/checkpoint')).json).to.include({ seq: 7, _rev: '0-1' })
    })

    it(`cannot copy design documents, nor learn which exist: ${who}`, async () => {
      const reason = 'Only administrators can view design docs in the users database.'
      for (const source of ['_design/secret', '_design%2Fsecret', '_design/none']) {
        for (const target of [`${idOf('bob')}?rev=${revision}`, idOf('eve'), '_local/x', '_design/x']) {
          expect(outcome(await copy(source, target, headers)), `${source} ${target}`).to.deep.equal([403, reason])
        }
        const refused = [who === 'a user' ? 403 : 401, 'You are not a db or server admin.']
        for (const path of [source, `${source}/a.txt`]) {
          expect(outcome(await node.delete(`/_users/${path}`, headers)), path).to.deep.equal(refused)
          expect(outcome(await node.put(`/_users/${path}`, {}, headers)), path).to.deep.equal(refused)
        }
        const written = { _id: decodeURIComponent(source) }
        expect(outcome(await node.post('/_users', written, headers)), source).to.deep.equal(refused)
        const [row] = (await node.post('/_users/_bulk_docs', { docs: [written] }, headers)).json
        expect(row.reason, source).to.equal(refused[1])
      }
      expect((await node.get(`/_users/${idOf('bob')}`)).json).not.to.have.property('field')
    })
  }

  it('cannot copy their own documents to local documents', async () => {
    for (const target of ['_local/checkpoint?rev=0-1', '_local/checkpoint', '_local/new']) {
      expect(outcome(await copy(idOf('bob'), target, bob)), target).to.deep.equal([401, notServerAdmin])
    }
    expect((await node.get('/_users/_local/checkpoint')).json).to.include({ seq: 7, _rev: '0-1' })
  })

  it('can do all of this when they are administrators of the database', async () => {
    await node.put('/_users/_security', { admins: { names: ['bob'] } })
    const local = { _id: '_local/checkpoint', seq: 8 }
    const answers = [
      await node.post('/_users', local, bob), await node.put('/_users/_local/checkpoint', local, bob),
      await node.post('/_users/_bulk_docs', { docs: [local] }, bob), await copy(idOf('bob'), '_local/mine', bob),
      await copy('_local/checkpoint', '_local/other', bob), await copy('_design/secret', '_local/secret', bob),
    ]
    for (const answer of answers) expect(answer.status, answer.text).to.equal(201)
    expect((await node.delete('/_users/_local/checkpoint', bob)).status).to.equal(200)
  })
})
