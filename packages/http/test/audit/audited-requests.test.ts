import { expect } from 'chai'
import { basic, MemoryNode } from '../memory-node.ts'

describe('audited requests', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  /** Sends requests, and returns the events that they caused. */
  const events = async (send: () => Promise<unknown>): Promise<unknown[]> => {
    node.audited.length = 0
    await send()
    return node.audited.map(({ event, user, address, requestId, details }) =>
      [event, user, address, requestId === null ? null : 'request', details])
  }
  const ann = basic('ann', 'wrong')
  const wrong = 'Name or password is incorrect.'

  it('are those with wrong credentials, with the name that was tried and without the password', async () => {
    const seen = await events(async () => {
      await node.get('/_up?password=hidden', { authorization: ann })
      await node.post('/_session', { name: 'ann', password: 'wrong' }, { authorization: '' })
      await node.post('/_session?fail=/login', { name: 'bob', password: 'wrong' }, { authorization: '' })
      await node.get('/', { authorization: '', cookie: 'AuthSession=%' })
      await node.get('/')
    })
    const failed = (user: string | null, details: object): unknown[] =>
      ['authentication_failed', user, '127.0.0.1', 'request', details]
    expect(seen).to.deep.equal([
      failed('ann', { method: 'GET', path: '/_up', route: 'unknown', status: 401, reason: wrong }),
      failed('ann', { method: 'POST', path: '/_session', route: 'session', status: 401, reason: wrong }),
      failed('bob', { method: 'POST', path: '/_session', route: 'session', status: 401, reason: wrong }),
      failed(null, {
        method: 'GET', path: '/', route: 'unknown', status: 400,
        reason: 'Malformed AuthSession cookie. Please clear your cookies.',
      }),
    ])
    expect(JSON.stringify(seen)).not.to.match(/wrong|hidden/)
  })

  it('are those that lock an account', async () => {
    const seen = await events(async () => {
      for (let index = 0; index < 6; index++) await node.get('/_up', { authorization: ann })
    }) as unknown[][]
    expect(seen.map(([event]) => event)).to.deep.equal([
      ...Array.from({ length: 4 }, () => 'authentication_failed'), 'account_locked', 'authentication_failed',
      'authentication_failed',
    ])
    expect(seen[4]!.slice(1)).to.deep.equal(
      ['ann', '127.0.0.1', 'request', { failures: 5, seconds: 300, refused: true }],
    )
    expect((seen[6]![4] as { status: number }).status).to.equal(403)
  })

  it('are those without the right', async () => {
    await node.put('/db')
    const seen = await events(async () => {
      await node.get('/db/secret', { authorization: '' })
      await node.put('/other', undefined, { authorization: '' })
      await node.get('/missing')
    })
    const refused = (details: object): unknown[] => ['permission_refused', null, '127.0.0.1', 'request', details]
    expect(seen).to.deep.equal([
      refused({
        method: 'GET', path: '/db/secret', route: 'document', status: 401,
        reason: 'You are not authorized to access this db.',
      }),
      refused({ method: 'PUT', path: '/other', route: 'database', status: 401, reason: 'You are not a server admin.' }),
    ])
  })

  it('are those that change databases, rights, users and the configuration', async () => {
    const seen = await events(async () => {
      await node.put('/db?q=2')
      await node.put('/db/_security', { admins: { names: ['ann'], roles: [] }, members: { roles: ['staff'] }, x: 'y' })
      await node.put('/_users/org.couchdb.user:ann', { name: 'ann', type: 'user', roles: [], password: 'hidden' })
      await node.put('/_node/_local/_config/jwt_keys/hmac:a', '"c2VjcmV0"')
      await node.delete('/_node/_local/_config/jwt_keys/hmac:a')
      await node.delete('/db')
    })
    const by = ['admin', '127.0.0.1', 'request']
    const setting = { section: 'jwt_keys', key: 'hmac:a' }
    expect(seen).to.deep.equal([
      ['database_created', ...by, { database: 'db', q: 2, n: 3, partitioned: false }],
      ['security_changed', ...by, {
        database: 'db', admin_names: ['ann'], admin_roles: [], member_names: [], member_roles: ['staff'],
      }],
      ['database_created', ...by, { database: '_users', q: 8, n: 3, partitioned: false }],
      ['user_changed', ...by, { document: 'org.couchdb.user:ann' }],
      ['configuration_changed', ...by, { action: 'set', ...setting, value: '****', persist: true }],
      ['configuration_changed', ...by, { action: 'delete', ...setting, persist: true }],
      ['database_deleted', ...by, { database: 'db', outcome: 'deleted' }],
    ])
  })

  it('are those that purge documents, and change what a database keeps', async () => {
    await node.put('/db')
    const { json: { rev } } = await node.put('/db/secret', {})
    const user = '/_users/org.couchdb.user:ann'
    const { json: ann } = await node.put(user, { name: 'ann', type: 'user', roles: [], password: 'hidden' })
    const seen = await events(async () => {
      await node.put('/db/_revs_limit', 7)
      await node.put('/db/_purged_infos_limit', 8)
      await node.put('/db/_auto_purge', { deleted_document_ttl: '3_days' })
      await node.put('/db/_auto_purge', {})
      await node.post('/db/_purge', { secret: [rev], none: ['1-abc'] })
      await node.post('/_users/_purge', { 'org.couchdb.user:ann': [ann.rev], 'org.couchdb.user:bob': ['1-abc'] })
      await node.post('/db/_purge', { secret: 1 })
      await node.put('/db/_revs_limit', 0)
    })
    const by = ['admin', '127.0.0.1', 'request']
    const changed = (option: string, value: unknown): unknown[] =>
      ['database_changed', ...by, { database: 'db', option, value }]
    expect(seen).to.deep.equal([
      changed('revs_limit', 7), changed('purged_infos_limit', 8), changed('deleted_document_ttl', '3_days'),
      changed('deleted_document_ttl', null),
      ['documents_purged', ...by, { database: 'db', documents: 2, revisions: 1 }],
      ['documents_purged', ...by, { database: '_users', documents: 2, revisions: 1 }],
      ['user_changed', ...by, { document: 'org.couchdb.user:ann' }],
    ])
  })
})
