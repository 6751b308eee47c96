import { expect } from 'chai'
import { adminOnlySecurity, type DatabaseRecord } from '@sectional/cluster'
import { checkSecurityShape, isDatabaseAdmin, requireMember } from '../../src/authentication/authorization.ts'
import type { User } from '../../src/request/user.ts'
import { MemoryNode } from '../memory-node.ts'

const nobody: User = { name: null, roles: [], admin: false }
const anna: User = { name: 'anna', roles: ['team'], admin: false }
const root: User = { name: 'root', roles: ['_admin'], admin: true }

function secured(security: Record<string, unknown>): DatabaseRecord {
  return { security } as unknown as DatabaseRecord
}

function admits(security: Record<string, unknown>, user: User): boolean {
  try {
    requireMember(user, secured(security))
    return true
  } catch {
    return false
  }
}

describe('the security object', () => {
  it('admits everybody while no member is named', () => {
    for (const security of [{}, { members: {} }, { members: { names: [], roles: [] } }, { admins: { names: ['x'] } }]) {
      expect([admits(security, nobody), admits(security, anna)]).to.deep.equal([true, true])
    }
  })

  it('admits members and admins by name and role, and server administrators always', () => {
    for (const security of [
      { members: { names: ['anna'] } }, { members: { roles: ['team'] } }, { readers: { names: ['anna'] } },
      { admins: { roles: ['team'] }, members: { names: ['x'] } },
    ]) {
      expect([admits(security, nobody), admits(security, anna), admits(security, root)]).to.deep.equal([
        false, true, true,
      ])
    }
    for (const security of [
      adminOnlySecurity, { members: { roles: ['TEAM'] } }, { readers: { names: ['anna'] }, members: { names: ['x'] } },
    ]) {
      expect([admits(security, anna), admits(security, root)]).to.deep.equal([false, true])
    }
  })

  it('makes database admins by name and role', () => {
    expect(isDatabaseAdmin(anna, secured({ admins: { names: ['anna'] } }))).to.equal(true)
    expect(isDatabaseAdmin(anna, secured({ admins: { roles: ['team'] } }))).to.equal(true)
    expect(isDatabaseAdmin(anna, secured({ members: { names: ['anna'] } }))).to.equal(false)
    expect(isDatabaseAdmin(nobody, secured({}))).to.equal(false)
  })

  it('must have lists of texts', () => {
    expect(() => checkSecurityShape({ admins: ['a'] })).to.throw('admins or members must be a JSON list of strings')
    expect(() => checkSecurityShape({ admins: { names: 'a' } })).to.throw('names must be a JSON list of strings')
    expect(() => checkSecurityShape({ members: { roles: [1] } })).to.throw('roles must be a JSON list of strings')
    expect(() => checkSecurityShape({ readers: 5 })).to.throw('admins or members must be a JSON list of strings')
    checkSecurityShape({ admins: { names: ['a'], extra: 1 }, other: { names: 5 }, members: {}, readers: 5 })
  })
})

describe('access', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db')
  })
  afterEach(() => node.stop())
  const anonymous = { authorization: '' }

  it('to a new database is for administrators only', async () => {
    expect((await node.get('/db/_security')).json).to.deep.equal({
      members: { roles: ['_admin'] }, admins: { roles: ['_admin'] },
    })
    for (const [method, path] of [
      ['GET', ''], ['GET', '/doc'], ['PUT', '/doc'], ['POST', '/_bulk_docs'], ['GET', '/_security'],
      ['GET', '/_design/d/_view/v'], ['COPY', '/doc'], ['GET', '/_shards'],
      ['POST', '/_compact'], ['POST', '/_compact/d'], ['POST', '/_view_cleanup'],
    ] as const) {
      const refused = await node.request(method, `/db${path}`, undefined, anonymous)
      expect([refused.status, refused.json]).to.deep.equal([
        401, { error: 'unauthorized', reason: 'You are not authorized to access this db.' },
      ])
    }
  })

  it('follows couchdb/default_security for databases created from then on', async () => {
    node.configuration.put('couchdb', 'default_security', 'everyone')
    await node.put('/open')
    expect((await node.get('/open/_security')).json).to.deep.equal({})
    expect((await node.get('/open', anonymous)).status).to.equal(200)
  })

  it('to a new system database is for administrators only, whatever couchdb/default_security is', async () => {
    for (const value of ['everyone', 'admin_local']) {
      node.configuration.put('couchdb', 'default_security', value)
      for (const name of ['_users', '_replicator', '_global_changes', '_metadata', 'x%2F_users', 'x%2F_replicator']) {
        expect((await node.put(`/${name}`)).status, name).to.equal(201)
        expect((await node.get(`/${name}/_security`)).json, name).to.deep.equal(adminOnlySecurity)
        expect((await node.get(`/${name}`, anonymous)).status, name).to.equal(401)
        await node.delete(`/${name}`)
      }
    }
  })

  it('of members excludes writing design documents, limits and the security object', async () => {
    await node.put('/db/_security', {})
    expect((await node.put('/db/doc', {}, anonymous)).status).to.equal(201)
    for (const path of ['_design/d', '_security', '_revs_limit', '_auto_purge']) {
      const refused = await node.put(`/db/${path}`, {}, anonymous)
      expect([refused.status, refused.json.reason]).to.deep.equal([401, 'You are not a db or server admin.'])
    }
    expect((await node.post('/db/_compact', {}, anonymous)).json.reason).to.equal('You are not a server or db admin.')
    for (const path of ['_sync_shards', '_purge', '_search_cleanup']) {
      expect((await node.post(`/db/${path}`, {}, anonymous)).json.reason).to.equal('You are not a server admin.')
    }
    expect((await node.get('/db/_purged_infos_limit', anonymous)).status).to.equal(401)
  })

  it('of members to a design document is a conflict first where an administrator would have one', async () => {
    await node.put('/db/_security', {})
    const { rev } = (await node.put('/db/_design/d', { views: {} })).json
    await node.put('/db/doc', {}, anonymous)
    const stale = `1-${'f'.repeat(32)}`
    const text = { 'content-type': 'text/plain', ...anonymous }
    const copy = (destination: string) => node.request('COPY', '/db/doc', undefined, { ...anonymous, destination })
    const write = async (revision: string | undefined): Promise<unknown[]> => {
      const query = revision === undefined ? '' : `?rev=${revision}`
      const document = { _id: '_design/d', ...(revision !== undefined && { _rev: revision }) }
      const answers = [
        await node.put(`/db/_design/d${query}`, {}, anonymous), await node.post('/db', document, anonymous),
        await node.delete(`/db/_design/d${query}`, anonymous), await copy(`_design/d${query}`),
        await node.request('PUT', `/db/_design/d/a.txt${query}`, 'x', text),
      ]
      const [row] = (await node.post('/db/_bulk_docs', { docs: [document] }, anonymous)).json
      return [...answers.map(({ json }) => json), { error: row.error, reason: row.reason }]
    }
    const conflict = { error: 'conflict', reason: 'Document update conflict.' }
    const refused = { error: 'unauthorized', reason: 'You are not a db or server admin.' }
    expect(await write(undefined)).to.deep.equal(new Array(6).fill(conflict))
    expect((await write(stale)).filter(each => (each as typeof conflict).error === 'unauthorized')).to.deep.equal([])
    expect(await write(rev)).to.deep.equal(new Array(6).fill(refused))
    expect((await node.put('/db/_design/new', {}, anonymous)).json).to.deep.equal(refused)
    const replicated = { new_edits: false, docs: [{ _id: '_design/d', _rev: stale }] }
    expect((await node.post('/db/_bulk_docs', replicated, anonymous)).json[0]).to.include(refused)
    expect((await node.put('/db/_design/d?new_edits=false', { _rev: stale }, anonymous)).json).to.deep.equal(refused)
    expect((await node.get('/db/_design/d')).json._rev).to.equal(rev)
  })

  it('replaces the security object as a whole, and refuses bad ones without a change', async () => {
    await node.put('/db/_security', { admins: { names: ['a'] }, note: 'mine' })
    await node.put('/db/_security', { members: { roles: ['only'] } })
    expect((await node.put('/db/_security', { members: { names: 'x' } })).status).to.equal(400)
    expect((await node.get('/db/_security')).json).to.deep.equal({ members: { roles: ['only'] } })
  })

  it('refuses a security object that no change of the metadata has room for', async () => {
    const answer = await node.put('/db/_security', { members: { names: ['x'.repeat(1024 * 1024)] } })
    expect(answer.json).to.include({ error: 'too_large' })
  })

  it('to missing databases is 404 before rights are checked, except for creating and deleting', async () => {
    expect((await node.get('/none/doc', anonymous)).status).to.equal(404)
    expect((await node.put('/none', undefined, anonymous)).status).to.equal(401)
    expect((await node.delete('/none', anonymous)).status).to.equal(401)
  })

  it('to server endpoints is for server administrators', async () => {
    for (const path of [
      '/_all_dbs', '/_dbs_info', '/_active_tasks', '/_membership', '/_cluster_setup', '/_node/_local',
      '/_node/_local/_config', '/_db_updates', '/_scheduler/jobs',
      '/_users/_all_docs', '/_replicator/_changes', '/_global_changes/_all_docs',
    ]) {
      expect((await node.get(path, anonymous)).json, path).to.deep.equal({
        error: 'unauthorized', reason: 'You are not a server admin.',
      })
    }
    for (const path of ['_stats', '_system', '_prometheus']) {
      expect((await node.get(`/_node/_local/${path}`, anonymous)).json.reason).to.equal(
        'You are not a server admin or read-only metrics user',
      )
    }
    expect((await node.post('/_replicate', {}, anonymous)).json.reason).to.equal('You are not an authenticated user')
    for (const path of ['/', '/_up', '/_uuids', '/_session', '/favicon.ico']) {
      expect((await node.get(path, anonymous)).status).to.equal(200)
    }
  })

  it('to internal databases is for server administrators, whatever their security object says', async () => {
    for (const name of ['_global_changes', '_metadata']) {
      const refuses = async (): Promise<void> => {
        for (const [method, path, body] of [
          ['GET', ''], ['GET', '/doc'], ['PUT', '/doc2', {}], ['GET', '/_security'], ['GET', '/_design_docs'],
          ['POST', '/_find', { selector: {} }], ['POST', '/_bulk_docs', { docs: [{}] }],
          ['POST', '/_bulk_get', { docs: [{ id: 'doc' }] }],
        ] as const) {
          const refused = await node.request(method, `/${name}${path}`, body, anonymous)
          expect([refused.status, refused.json], `${method} ${name}${path}`).to.deep.equal([
            401, { error: 'unauthorized', reason: 'You are not a server admin.' },
          ])
        }
      }
      await refuses()
      await node.put(`/${name}`)
      await node.put(`/${name}/_security`, {})
      expect((await node.put(`/${name}/doc`, {})).status).to.equal(201)
      await refuses()
      expect((await node.get(`/${name}/doc`)).status).to.equal(200)
    }
  })

  it('to the list of databases can be opened to everybody', async () => {
    node.configuration.put('chttpd', 'admin_only_all_dbs', 'false')
    expect((await node.get('/_all_dbs', anonymous)).json).to.deep.equal(['db'])
  })
})
