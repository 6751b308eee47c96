import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const nobody = { authorization: '' }
const as = (name: string, password: string): { readonly authorization: string } => (
  { authorization: basic(name, password) }
)
const idOf = (name: string): string => `org.couchdb.user:${name}`
const pathOf = (name: string): string => `/_users/${idOf(name)}`
const userOf = (name: string, password: string, roles: readonly string[] = []): object => (
  { name, type: 'user', roles, password }
)

describe('the users database', () => {
  let node: MemoryNode
  let coordinatorCalls: number
  beforeEach(() => {
    coordinatorCalls = 0
    node = new MemoryNode({
      wrap: coordinator => {
        const { openDocument } = coordinator
        coordinator.openDocument = (...parameters) => {
          coordinatorCalls++
          return openDocument(...parameters)
        }
        return coordinator
      },
    })
    node.configuration.put('chttpd_auth', 'iterations', '2')
  })
  afterEach(() => node.stop())

  const register = async (name: string, roles: readonly string[] = []): Promise<string> => {
    const answer = await node.put(pathOf(name), userOf(name, `pw ${name}`, roles))
    expect(answer.status, answer.text).to.equal(201)
    return answer.json.rev
  }
  /** Admits everybody to the database, as administrators do who let people register. */
  const openToAll = async (): Promise<void> => {
    node.configuration.put('couchdb', 'users_db_security_editable', 'true')
    expect((await node.put('/_users/_security', {})).status).to.equal(200)
  }
  const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]
  const userCtx = async (headers: Record<string, string>): Promise<unknown> => {
    const answer = await node.get('/_session', { ...nobody, ...headers })
    return answer.status === 200 ? answer.json.userCtx : answer.json.reason
  }
  const wrong = 'Name or password is incorrect.'

  describe('exists', () => {
    it('when a server administrator first writes to it', async () => {
      expect((await node.get('/_users')).status).to.equal(404)
      expect((await node.put(pathOf('ann'), userOf('ann', 'x'), nobody)).status).to.equal(404)
      await register('ann')
      expect((await node.get('/_users/_security')).json).to.deep.equal({
        members: { roles: ['_admin'] }, admins: { roles: ['_admin'] },
      })
    })

    it('no more after an administrator has deleted it, until one creates it', async () => {
      await register('ann')
      expect((await node.delete('/_users')).status).to.equal(200)
      expect((await node.put(pathOf('bob'), userOf('bob', 'x'))).status).to.equal(404)
      expect(await userCtx(as('ann', 'pw ann'))).to.equal(wrong)
      expect((await node.put('/_users')).status).to.equal(201)
      expect(await userCtx(as('ann', 'pw ann'))).to.equal(wrong)
      await register('ann')
      expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal({ name: 'ann', roles: [] })
    })
  })

  describe('replaces a password by its hash', () => {
    const stored = async (name: string): Promise<Record<string, unknown>> => (await node.get(pathOf(name))).json
    const isHashOf = (document: Record<string, unknown>, password: string): boolean => document['derived_key']
      === pbkdf2Sync(password, document['salt'] as string, 2, 32, 'sha256').toString('hex')

    it('and keeps the other members exactly', async () => {
      const text = '{"type":"user","name":"ann","roles":[],"n":12345678901234567890,"x":1.0,"pass\\u0077ord":"geheim",'
        + '"nested":{"password":"kept"}}'
      expect((await node.put(pathOf('ann'), text, { 'content-type': 'application/json' })).status).to.equal(201)
      const answer = await node.get(pathOf('ann'))
      expect(answer.text).not.to.include('geheim')
      expect(answer.text).to.include('"n":12345678901234567890,"x":1.0,"nested":{"password":"kept"}')
      expect(answer.json).to.include({ password_scheme: 'pbkdf2', pbkdf2_prf: 'sha256', iterations: 2 })
      expect(answer.json.salt).to.match(/^[0-9a-f]{32}$/)
      expect(isHashOf(answer.json, 'geheim')).to.equal(true)
    })

    it('on every path of a write', async () => {
      await register('first')
      const { _id: _first, _rev: rev, ...first } = await stored('first')
      expect(rev).to.match(/^1-/)
      const write = (name: string): object => ({ _id: idOf(name), ...userOf(name, 'geheim') })
      const boundary = { 'content-type': 'multipart/related; boundary=b' }
      const part = `--b\r\nContent-Type: application/json\r\n\r\n${JSON.stringify({
        ...userOf('multipart', 'geheim'),
        _attachments: { 'a.txt': { follows: true, content_type: 'text/plain', length: 1 } },
      })}\r\n--b\r\n\r\nx\r\n--b--`
      const ddoc = { updates: { u: '(doc, req) => [JSON.parse(req.body), "done"]' } }
      expect((await node.put('/_users/_design/d', ddoc)).status).to.equal(201)
      const answers = [
        await node.put(pathOf('put'), userOf('put', 'geheim')),
        await node.post('/_users', write('post')),
        await node.put(`${pathOf('batch')}?batch=ok`, userOf('batch', 'geheim')),
        await node.post('/_users/_bulk_docs', { docs: [write('bulk')] }),
        await node.post('/_users/_bulk_docs', { new_edits: false, docs: [{ ...write('replicated'), _rev: '1-ab' }] }),
        await node.put(`${pathOf('replicatedalone')}?new_edits=false`, { ...write('replicatedalone'), _rev: '1-ab' }),
        await node.put(pathOf('multipart'), part, boundary),
        await node.post('/_users/_design/d/_update/u', write('update')),
        await node.request('PUT', `${pathOf('first')}/a.txt?rev=${rev}`, 'x', { 'content-type': 'text/plain' }),
      ]
      expect(answers.map(({ status }) => status)).to.deep.equal(new Array(9).fill(201))
      const names = ['put', 'post', 'batch', 'bulk', 'replicated', 'replicatedalone', 'multipart', 'update']
      for (const name of names) {
        const document = await stored(name)
        expect(document, name).not.to.have.property('password')
        expect(isHashOf(document, 'geheim'), name).to.equal(true)
      }
      expect(await stored('first')).to.include({ salt: first['salt'], derived_key: first['derived_key'] })
      expect(JSON.stringify(node.log.lines)).not.to.include('geheim')
    })

    it('with the configured digest', async () => {
      node.configuration.put('chttpd_auth', 'pbkdf2_prf', 'sha512')
      await register('ann')
      const document = await stored('ann')
      expect(document).to.include({ pbkdf2_prf: 'sha512' })
      expect(document['derived_key']).to.have.length(128)
      expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal({ name: 'ann', roles: [] })
    })

    it('and refuses what is not a text, without showing it', async () => {
      const reason = 'Password value is invalid: it must be a string.'
      for (const password of [7, true, [], ['x'.repeat(200)]]) {
        const bulk = await node.post('/_users/_bulk_docs', { docs: [{ _id: idOf('ann'), password }] })
        expect(outcome(bulk)).to.deep.equal([403, reason])
      }
    })

    it('and removes one that is null, without a change of the hash', async () => {
      await register('ann')
      const before = await stored('ann')
      expect((await node.put(pathOf('ann'), { ...before, password: null })).status).to.equal(201)
      expect(await stored('ann')).to.deep.equal({ ...before, _rev: (await stored('ann'))['_rev'] })
      expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal({ name: 'ann', roles: [] })
    })
  })

  describe('logs users in', () => {
    it('with basic credentials and with a cookie, and with their roles', async () => {
      await register('ann', ['writer', '_metrics'])
      const ann = { name: 'ann', roles: ['writer', '_metrics'] }
      expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal(ann)
      const login = await node.post('/_session', { name: 'ann', password: 'pw ann' }, nobody)
      expect(login.json).to.deep.equal({ ok: true, ...ann })
      const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
      expect(await userCtx({ cookie })).to.deep.equal(ann)
      expect(outcome(await node.get('/_all_dbs', as('ann', 'pw ann')))).to.deep.equal([
        401, 'You are not a server admin.',
      ])
      expect((await node.get('/_node/_local/_system', as('ann', 'pw ann'))).status).to.equal(200)
      expect(await userCtx(as('ann', 'wrong'))).to.equal(wrong)
      expect(await userCtx(as('unknown', 'pw ann'))).to.equal(wrong)
    })

    it('as members and administrators of databases, by name and by role', async () => {
      await register('ann', ['writer'])
      await register('bob')
      await node.put('/db')
      await node.put('/db/_security', { members: { roles: ['writer'] }, admins: { names: ['bob'] } })
      expect((await node.put('/db/a', {}, as('ann', 'pw ann'))).status).to.equal(201)
      expect((await node.put('/db/_design/d', {}, as('ann', 'pw ann'))).status).to.equal(403)
      expect((await node.put('/db/_design/d', {}, as('bob', 'pw bob'))).status).to.equal(201)
      await register('eve')
      expect(outcome(await node.get('/db', as('eve', 'pw eve')))).to.deep.equal([
        403, 'You are not allowed to access this db.',
      ])
    })

    const salt = 'd00dfeedd00dfeed'
    const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')
    const derived = (text: string, bytes: number, digest: string): string => (
      pbkdf2Sync(text, salt, 3, bytes, digest).toString('hex'))
    const schemes: Record<string, object> = {
      'simple': { password_scheme: 'simple', salt, password_sha: sha1(`old${salt}`) },
      'no scheme': { salt, password_sha: sha1(`old${salt}`) },
      'pbkdf2 without a digest': {
        password_scheme: 'pbkdf2', salt, iterations: 3, derived_key: derived('old', 20, 'sha1'),
      },
      'simple+pbkdf2': {
        password_scheme: 'simple+pbkdf2', pbkdf2_prf: 'sha256', salt, iterations: 3,
        derived_key: derived(sha1(`old${salt}`), 32, 'sha256'),
      },
    }
    for (const digest of ['sha224', 'sha256', 'sha384', 'sha512']) {
      schemes[`pbkdf2 with ${digest}`] = {
        password_scheme: 'pbkdf2', pbkdf2_prf: digest, salt, iterations: 3, derived_key: derived('old', 32, digest),
      }
    }
    for (const [scheme, fields] of Object.entries(schemes)) {
      it(`with a hash of the scheme ${scheme}`, async () => {
        await node.put(pathOf('ann'), { name: 'ann', type: 'user', roles: [], ...fields })
        expect(await userCtx(as('ann', 'old'))).to.deep.equal({ name: 'ann', roles: [] })
        expect(await userCtx(as('ann', 'new'))).to.equal(wrong)
      })
    }

    it('not without a password, nor with a key of unusual length, nor with a second factor', async () => {
      const hash = { password_scheme: 'pbkdf2', pbkdf2_prf: 'sha256', salt, iterations: 3 }
      const documents = [
        {}, { ...hash, derived_key: '' }, { ...hash, derived_key: 'zz' }, { ...hash, derived_key: '00'.repeat(65) },
        { ...hash, derived_key: derived('', 32, 'sha256'), totp: { key: 'JBSWY3DPEHPK3PXP' } },
      ]
      for (const [index, fields] of documents.entries()) {
        const name = `u${index}`
        const written = await node.put(pathOf(name), { name, type: 'user', roles: [], ...fields })
        expect(written.status).to.equal(201)
        expect(await userCtx(as(name, '')), name).to.equal(wrong)
      }
    })

    it('only when the iterations of the hash are within the bounds', async () => {
      const fields = schemes['pbkdf2 with sha256']
      await node.put(pathOf('ann'), { name: 'ann', type: 'user', roles: [], ...fields })
      node.configuration.put('chttpd_auth', 'min_iterations', '4')
      expect(outcome(await node.get('/_session', as('ann', 'old')))).to.deep.equal([
        403, 'Iteration count is too low for this server',
      ])
      node.configuration.put('chttpd_auth', 'min_iterations', '1')
      node.configuration.put('chttpd_auth', 'max_iterations', '2')
      expect(outcome(await node.get('/_session', as('ann', 'old')))).to.deep.equal([
        403, 'Iteration count is too high for this server',
      ])
    })

    it('only when the digest of the hash is known', async () => {
      const hash = { password_scheme: 'pbkdf2', pbkdf2_prf: 'md5', salt, iterations: 3, derived_key: '00'.repeat(16) }
      await node.put(pathOf('ann'), { name: 'ann', type: 'user', roles: [], ...hash })
      expect(outcome(await node.get('/_session', as('ann', 'old')))).to.deep.equal([403, 'PRF is invalid'])
    })

    it('with a new password, whatever the bounds are, and administrators always', async () => {
      for (const [min, max] of [['5', '9'], ['1', '1']] as const) {
        node.configuration.put('chttpd_auth', 'min_iterations', min)
        node.configuration.put('chttpd_auth', 'max_iterations', max)
        await register(`ann${min}`)
        expect(await userCtx(as(`ann${min}`, `pw ann${min}`))).to.deep.equal({ name: `ann${min}`, roles: [] })
        node.configuration.put('admins', 'root', `-pbkdf2:sha256-${derived('old', 32, 'sha256')},${salt},3`)
        expect(await userCtx(as('root', 'old'))).to.deep.equal({ name: 'root', roles: ['_admin'] })
      }
    })

    it('not while the document has conflicts', async () => {
      await register('ann')
      const { json } = await node.get(pathOf('ann'))
      const login = await node.post('/_session', { name: 'ann', password: 'pw ann' }, nobody)
      await node.post('/_users/_bulk_docs', { new_edits: false, docs: [{ ...json, _rev: '1-ff' }] })
      const reason = 'User document conflicts must be resolved before the document is used for authentication purposes.'
      expect(outcome(await node.get('/_session', as('ann', 'pw ann')))).to.deep.equal([401, reason])
      const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
      expect(outcome(await node.get('/_session', { ...nobody, cookie }))).to.deep.equal([401, reason])
    })

    it('after an administrator of the same name', async () => {
      await register('admin')
      expect(await userCtx(as('admin', 'secret'))).to.deep.equal({ name: 'admin', roles: ['_admin'] })
      expect(await userCtx(as('admin', 'pw admin'))).to.equal(wrong)
    })

    it('with one check of the password and few reads for many requests', async () => {
      await register('ann')
      const hashed = node.machine.pbkdf2Calls
      coordinatorCalls = 0
      for (let i = 0; i < 20; i++) await node.get('/_up', as('ann', 'pw ann'))
      expect([node.machine.pbkdf2Calls - hashed, coordinatorCalls]).to.deep.equal([1, 1])
      await node.clock.advance(3_000)
      for (let i = 0; i < 20; i++) await node.get('/_up', as('ann', 'pw ann'))
      expect([node.machine.pbkdf2Calls - hashed, coordinatorCalls]).to.deep.equal([1, 2])
    })

    it('does the work of a check for an unknown name', async () => {
      const hashed = node.machine.pbkdf2Calls
      expect(await userCtx({ authorization: basic('nobody', 'x') })).to.equal(wrong)
      expect(node.machine.pbkdf2Calls - hashed).to.equal(1)
    })
  })

  describe('ends logins', () => {
    it('at once when a password is changed or the user is deleted on this node', async () => {
      let rev = await register('ann')
      const login = await node.post('/_session', { name: 'ann', password: 'pw ann' }, nobody)
      const cookie = login.headers['set-cookie']!.split(';', 1)[0]!
      expect(await userCtx(as('ann', 'pw ann'))).to.have.property('name', 'ann')
      rev = (await node.put(`${pathOf('ann')}?rev=${rev}`, userOf('ann', 'next'))).json.rev
      expect(await userCtx(as('ann', 'pw ann'))).to.equal(wrong)
      expect(await userCtx({ cookie })).to.have.property('name', null)
      expect(await userCtx(as('ann', 'next'))).to.have.property('name', 'ann')
      await node.delete(`${pathOf('ann')}?rev=${rev}`)
      expect(await userCtx(as('ann', 'next'))).to.equal(wrong)
    })

    it('within seconds when another node wrote the document', async () => {
      const rev = await register('ann', ['writer'])
      expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal({ name: 'ann', roles: ['writer'] })
      const db = node.control.state()!.databases.get('_users')!
      const context = { requestId: 'test', signal: new AbortController().signal }
      const [written] = await node.coordinator.updateDocuments(
        db, [{ id: idOf('ann'), parent: rev, deleted: true, body: Buffer.from('{}'), revisionHash: 'ab' }], {}, context,
      )
      expect(written?.kind).to.equal('written')
      await node.clock.advance(5_000)
      expect(await userCtx(as('ann', 'pw ann'))).to.equal(wrong)
    })

    it('never accepts a forged cookie', async () => {
      await register('ann')
      await node.put(pathOf('bare'), { name: 'bare', type: 'user', roles: [] })
      await node.post('/_session', { name: 'ann', password: 'pw ann' }, nobody)
      const time = Math.floor(node.clock.now() / 1000).toString(16).toUpperCase()
      const { salt } = (await node.get(pathOf('ann'))).json
      for (const [name, key] of [['ann', salt], ['ann', ''], ['bare', ''], ['unknown', '']] as const) {
        const message = `${name}:${time}`
        const signature = createHmac('sha256', key).update(message).digest()
        const cookie = `AuthSession=${Buffer.concat([Buffer.from(`${message}:`), signature]).toString('base64url')}`
        expect(await userCtx({ cookie })).to.have.property('name', null)
      }
    })
  })

  describe('refuses', () => {
    it('documents that are not those of a user', async () => {
      const put = (more: object, name = 'ann') => node.put(pathOf(name), { name, type: 'user', roles: [], ...more })
      const refused: readonly (readonly [object, string, string?])[] = [
        [{ type: 'person' }, 'doc.type must be user'],
        [{ name: 0 }, 'doc.name is required'], [{ name: '' }, 'doc.name is required'],
        ...[undefined, '', 0, false].map(roles => [{ roles }, 'doc.roles must exist'] as const),
        [{ roles: 'a', name: 5 }, 'doc.roles must be an array'],
        [{ roles: ['a', 1] }, 'doc.roles can only contain strings'],
        [{ name: 5 }, 'Doc ID must be of the form org.couchdb.user:name'],
        [{ name: 'bob' }, 'Doc ID must be of the form org.couchdb.user:name'],
        [{ password_scheme: 'rot13' }, 'Password scheme `rot13` not supported.'],
        [{ password_scheme: 'pbkdf2', iterations: '1' }, 'iterations must be a number.'],
        [{ password_scheme: 'pbkdf2', iterations: 1 }, 'derived_key must be a string.'],
        [{ roles: ['_admin'] }, 'No system roles (starting with underscore) in users db.'],
        [{}, 'Username may not start with underscore.', '_ann'],
        [{}, 'Character `:` is not allowed in usernames.', 'a:b'],
      ]
      for (const [more, reason, name] of refused) expect(outcome(await put(more, name))).to.deep.equal([403, reason])
    })

    it('strangers and users by default', async () => {
      await register('ann')
      expect((await node.get(pathOf('ann'), as('ann', 'pw ann'))).status).to.equal(403)
      expect((await node.put(pathOf('bob'), userOf('bob', 'x'), nobody)).status).to.equal(401)
      expect(outcome(await node.put('/_users/_security', {}))).to.deep.equal([
        403, "You can't edit the security object of the user database.",
      ])
    })
  })

  describe('that is open to all', () => {
    let revisions: Record<string, string>
    beforeEach(async () => {
      revisions = { ann: await register('ann', ['writer', 'b']), bob: await register('bob') }
      await openToAll()
    })
    const bob = as('bob', 'pw bob')
    const ann = as('ann', 'pw ann')

    it('lets anybody register without roles', async () => {
      expect((await node.put(pathOf('eve'), userOf('eve', 'x'), nobody)).status).to.equal(201)
      expect(await userCtx(as('eve', 'x'))).to.deep.equal({ name: 'eve', roles: [] })
      const refused = await node.put(pathOf('max'), userOf('max', 'x', ['writer']), nobody)
      expect(outcome(refused)).to.deep.equal([403, 'Only _admin may set roles'])
      expect((await node.put(pathOf('ann'), userOf('ann', 'taken'), nobody)).status).to.equal(409)
      const path = `${pathOf('ann')}?rev=${revisions['ann']}`
      const taken = await node.put(path, userOf('ann', 'taken', ['writer', 'b']), nobody)
      expect(outcome(taken)).to.deep.equal([403, 'You may only update your own user document.'])
      expect(await userCtx(ann)).to.have.property('name', 'ann')
    })

    it('takes hashes of very many rounds, which block logins, from administrators only', async () => {
      const costly = {
        type: 'user', name: 'max', roles: [], password_scheme: 'pbkdf2', salt: '00', derived_key: '00'.repeat(20),
        iterations: 1_000_001,
      }
      const reason = 'iterations is 1000001; only an administrator may write more than 1000000.'
      expect(outcome(await node.put(pathOf('max'), costly, nobody))).to.deep.equal([403, reason])
      expect((await node.put(pathOf('max'), { ...costly, iterations: 1_000_000 }, nobody)).status).to.equal(201)
    })

    it('lets users read, change and delete their own documents, but not their roles', async () => {
      expect((await node.get(pathOf('ann'), ann)).json.name).to.equal('ann')
      const path = `${pathOf('ann')}?rev=${revisions['ann']}`
      for (const roles of [[], ['writer', 'b', 'c'], ['writer', 'c']]) {
        expect(outcome(await node.put(path, userOf('ann', 'x', roles), ann))).to.deep.equal([
          403, 'Only _admin may edit roles',
        ])
      }
      const changed = await node.put(path, userOf('ann', 'next', ['b', 'writer']), ann)
      expect(changed.status).to.equal(201)
      const deleted = await node.delete(`${pathOf('ann')}?rev=${changed.json.rev}`, as('ann', 'next'))
      expect(deleted.status).to.equal(200)
      expect(await userCtx(as('ann', 'next'))).to.equal(wrong)
    })

    it('answers 404 to users who read or write the documents of others', async () => {
      const path = `${pathOf('ann')}?rev=${revisions['ann']}`
      const document = { ...userOf('ann', 'stolen', ['writer', 'b']), _id: idOf('ann'), _rev: revisions['ann'] }
      const answers = [
        await node.get(pathOf('ann'), bob), await node.get(pathOf('ann'), nobody),
        await node.put(path, document, bob), await node.put(pathOf('third'), userOf('third', 'x'), bob),
        await node.delete(path, bob), await node.delete(path, nobody), await node.post('/_users', document, bob),
        await node.put(`${pathOf('ann')}/a.txt?rev=${revisions['ann']}`, 'x', bob),
        await node.get(`${pathOf('ann')}/a.txt`, bob),
        await node.request('COPY', pathOf('ann'), undefined, { ...bob, destination: idOf('bob') }),
        await node.request('COPY', pathOf('bob'), undefined, { ...bob, destination: idOf('ann') }),
      ]
      for (const answer of answers) expect(outcome(answer)).to.deep.equal([404, 'missing'])
      const own = { ...userOf('bob', 'next'), _id: idOf('bob'), _rev: revisions['bob'] }
      const bulk = await node.post('/_users/_bulk_docs', { docs: [own, document] }, bob)
      expect(outcome(bulk)).to.deep.equal([404, 'missing'])
      expect((await node.get(pathOf('bob'))).json._rev, 'nothing was written').to.equal(revisions['bob'])
      expect(await userCtx(ann)).to.have.property('name', 'ann')
    })

    it('shows lists, functions and local documents to administrators only', async () => {
      const answers = [
        await node.get('/_users/_all_docs', bob), await node.get('/_users/_changes', bob),
        await node.get('/_users/_design_docs', bob), await node.get('/_users/_local_docs', bob),
        await node.get('/_users/_design/d/_view/v', bob), await node.get('/_users/_design/d/_show/s/x', bob),
        await node.get('/_users/_design/d/_list/l/v', bob), await node.post('/_users/_design/d/_update/u', {}, bob),
        await node.get('/_users/_design/d/_rewrite/x', bob), await node.get('/_users/_local/x', bob),
        await node.post('/_users/_bulk_get', { docs: [{ id: idOf('ann') }] }, bob),
        await node.post('/_users/_revs_diff', {}, bob),
      ]
      for (const answer of answers) expect(outcome(answer)).to.deep.equal([401, 'You are not a server admin.'])
      for (const path of ['_aggregate', '_explain', '_index']) {
        const query = await node.post(`/_users/${path}`, { selector: {}, index: { fields: ['name'] } }, bob)
        expect(outcome(query), path).to.deep.equal([403, 'You are not a db or server admin.'])
      }
      expect(outcome(await node.get('/_users/_design/d', bob))).to.deep.equal([
        403, 'Only administrators can view design docs in the users database.',
      ])
      expect((await node.put('/_users/_design/d', {}, bob)).status).to.equal(403)
    })

    it('takes revisions with their history from administrators only', async () => {
      const first = revisions['ann']!
      const next = await node.put(`${pathOf('ann')}?rev=${first}`, userOf('ann', 'pw ann'))
      const own = { ...userOf('ann', 'pw ann', ['writer', 'b']), _id: idOf('ann') }
      const attack = await node.post('/_users/_bulk_docs', {
        new_edits: false,
        docs: [
          { ...own, _revisions: { start: 2, ids: ['f'.repeat(32), first.slice(2)] } },
          { ...own, _deleted: true, _revisions: { start: 3, ids: ['e'.repeat(32), next.json.rev.slice(2)] } },
        ],
      }, ann)
      expect(attack.json.map(({ error }: { error: string }) => error)).to.deep.equal(['forbidden', 'forbidden'])
      expect(await userCtx(ann)).to.deep.equal({ name: 'ann', roles: [] })
    })

    it('treats its own administrators like those of the server', async () => {
      await node.put('/_users/_security', { admins: { names: ['bob'] } })
      expect((await node.get(pathOf('ann'), bob)).json.name).to.equal('ann')
      const path = `${pathOf('ann')}?rev=${revisions['ann']}`
      expect((await node.put(path, userOf('ann', 'x', ['more']), bob)).status).to.equal(201)
    })
  })

  describe('shows public members', () => {
    beforeEach(async () => {
      await node.put(pathOf('ann'), { ...userOf('ann', 'pw ann', ['r']), city: 'Bonn', n: 1 })
      await register('bob')
      await openToAll()
      node.configuration.put('chttpd_auth', 'users_db_public', 'true')
      node.configuration.put('chttpd_auth', 'public_fields', 'city, name, salary')
    })

    it('of every user to every member, and the whole document to its owner', async () => {
      for (const headers of [nobody, as('bob', 'pw bob')]) {
        const answer = await node.get(`${pathOf('ann')}?revs=true&attachments=true`, headers)
        expect(answer.json).to.have.all.keys('_id', '_rev', 'name', 'city').and.include({ name: 'ann', city: 'Bonn' })
        expect(answer.headers).not.to.have.property('etag')
      }
      expect((await node.get(pathOf('ann'), as('ann', 'pw ann'))).json).to.include({ n: 1, password_scheme: 'pbkdf2' })
    })

    it('but not in the forms of open_revs', async () => {
      for (const revs of ['all', '["1-0"]']) {
        const answer = await node.get(`${pathOf('ann')}?open_revs=${encodeURIComponent(revs)}`, nobody)
        expect([answer.status, answer.json.error]).to.deep.equal([400, 'bad_request'])
      }
    })

    it('and nothing else, not even secrets that the option names', async () => {
      node.configuration.put('chttpd_auth', 'public_fields', 'city, salt, derived_key, totp')
      const { json } = await node.get(pathOf('ann'), nobody)
      expect(Object.keys(json)).to.deep.equal(['_id', '_rev', 'city'])
      const statuses = await Promise.all([
        node.get(`${pathOf('ann')}/file`, as('bob', 'pw bob')), node.get(pathOf('carl'), as('bob', 'pw bob')),
        node.delete(`${pathOf('ann')}?rev=1-a`, as('bob', 'pw bob')), node.get('/_users/other', as('bob', 'pw bob')),
        node.get('/_users/_all_docs', as('bob', 'pw bob')),
      ].map(async answer => (await answer).status))
      expect(statuses).to.deep.equal([404, 404, 404, 404, 401])
    })

    it('only while both options say so, and the document has one of them', async () => {
      node.configuration.put('chttpd_auth', 'public_fields', 'salary')
      expect((await node.get(pathOf('ann'), nobody)).status).to.equal(404)
      node.configuration.put('chttpd_auth', 'public_fields', '')
      expect((await node.get(pathOf('ann'), nobody)).status).to.equal(404)
      node.configuration.put('chttpd_auth', 'public_fields', 'city')
      node.configuration.put('chttpd_auth', 'users_db_public', 'false')
      expect((await node.get(pathOf('ann'), nobody)).status).to.equal(404)
    })
  })

  describe('renews outdated hashes', () => {
    const salt = 'd00dfeed'
    const old = {
      name: 'ann', type: 'user', roles: ['r'], note: 'mine', password_scheme: 'simple', salt,
      password_sha: createHash('sha1').update(`veteran${salt}`).digest('hex'),
    }
    const store = async (document: object): Promise<void> => {
      expect((await node.put(pathOf('ann'), document)).status).to.equal(201)
    }
    const login = (password: string): Promise<Answer> => node.post('/_session', { name: 'ann', password }, nobody)
    const stored = async (): Promise<Record<string, unknown>> => {
      await node.clock.advance(0)
      return (await node.get(pathOf('ann'))).json
    }

    it('after a login, with the same salt, so that sessions continue', async () => {
      await store(old)
      const cookie = (await login('veteran')).headers['set-cookie']!.split(';', 1)[0]!
      const renewed = await stored()
      const { _id, _rev, ...members } = renewed
      expect(members).to.deep.equal({
        password_scheme: 'pbkdf2', pbkdf2_prf: 'sha256', salt, iterations: 2,
        derived_key: pbkdf2Sync('veteran', salt, 2, 32, 'sha256').toString('hex'),
        name: 'ann', type: 'user', roles: ['r'], note: 'mine',
      })
      expect(_rev).to.match(/^2-/)
      expect(await userCtx({ cookie })).to.deep.equal({ name: 'ann', roles: ['r'] })
      expect(await userCtx(as('ann', 'veteran'))).to.deep.equal({ name: 'ann', roles: ['r'] })
      expect((await stored())['_rev']).to.equal(_rev)
    })

    it('that have fewer iterations or another digest, and no stronger ones', async () => {
      const key = (iterations: number, digest: string, bytes: number): object => ({
        password_scheme: 'pbkdf2', pbkdf2_prf: digest, iterations,
        derived_key: pbkdf2Sync('veteran', salt, iterations, bytes, digest).toString('hex'), salt,
      })
      const generationAfterLogin = async (name: string, hash: object): Promise<unknown> => {
        await node.put(pathOf(name), { name, type: 'user', roles: [], ...hash })
        expect(await userCtx(as(name, 'veteran'))).to.deep.equal({ name, roles: [] })
        await node.clock.advance(0)
        return Number.parseInt((await node.get(pathOf(name))).json._rev, 10)
      }
      expect(await generationAfterLogin('few', key(1, 'sha256', 32))).to.equal(2)
      expect(await generationAfterLogin('other', key(2, 'sha512', 64))).to.equal(2)
      expect(await generationAfterLogin('more', key(3, 'sha256', 32))).to.equal(1)
      node.configuration.put('chttpd_auth', 'password_scheme', 'simple')
      expect(await generationAfterLogin('strong', key(1, 'sha256', 32))).to.equal(1)
    })

    it('but not after a wrong password, and not when it is told so', async () => {
      await store(old)
      await login('wrong')
      expect((await stored())['_rev']).to.match(/^1-/)
      node.configuration.put('chttpd_auth', 'upgrade_hash_on_auth', 'false')
      expect((await login('veteran')).status).to.equal(200)
      expect((await stored())['_rev']).to.match(/^1-/)
    })
  })

  it('hashes as the option password_scheme says', async () => {
    node.configuration.put('chttpd_auth', 'password_scheme', 'simple')
    await register('ann')
    const { json } = await node.get(pathOf('ann'))
    expect(json.password_sha).to.equal(createHash('sha1').update(`pw ann${json.salt}`).digest('hex'))
    expect(json).not.to.have.any.keys('derived_key', 'iterations', 'pbkdf2_prf')
    expect(await userCtx(as('ann', 'pw ann'))).to.deep.equal({ name: 'ann', roles: [] })
    node.configuration.put('chttpd_auth', 'password_scheme', 'pbkdf2')
    expect((await node.put(pathOf('ann'), { ...json, password: 'next' })).status).to.equal(201)
    expect((await node.get(pathOf('ann'))).json).not.to.have.property('password_sha')
  })

  it('refuses passwords that break a rule, on every path of a write', async () => {
    node.configuration.put('chttpd_auth', 'password_regexp', '[{".{10,}", "Ten characters at least."}]')
    const document = { _id: idOf('ann'), ...userOf('ann', 'short') }
    const refused = [400, 'Password does not conform to requirements. Ten characters at least.']
    expect(outcome(await node.put(pathOf('ann'), document))).to.deep.equal(refused)
    expect(outcome(await node.post('/_users', document))).to.deep.equal(refused)
    expect(outcome(await node.post('/_users/_bulk_docs', { docs: [document] }))).to.deep.equal(refused)
    expect((await node.put(pathOf('ann'), userOf('ann', 'long enough'))).status).to.equal(201)
  })
})
