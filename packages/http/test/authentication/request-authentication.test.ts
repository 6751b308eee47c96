import { expect } from 'chai'
import { httpDeclarations } from '@sectional/http'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const option = httpDeclarations.authenticationHandlers

describe('the order of the authentication handlers', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode() })
  afterEach(() => node.stop())

  it('is that of the option', async () => {
    const login = await node.post('/_session', { name: 'admin', password: 'secret' }, { authorization: '' })
    const headers = {
      cookie: login.headers['set-cookie']!.split(';', 1)[0]!, authorization: basic('admin', 'secret'),
      'x-auth-service-username': 'remote',
    }
    const handler = async (order: string): Promise<unknown> => {
      node.configuration.put('chttpd', 'authentication_handlers', order)
      return (await node.get('/_session', headers)).json.info.authenticated
    }
    expect(await handler('cookie, proxy, default')).to.equal('cookie')
    expect(await handler('proxy, cookie, default')).to.equal('proxy')
    expect(await handler('default, cookie, proxy')).to.equal('default')
    expect(await handler('default')).to.equal('default')
  })

  it('decides which wrong credentials refuse a request', async () => {
    const status = async (order: string): Promise<number> => {
      node.configuration.put('chttpd', 'authentication_handlers', order)
      return (await node.get('/', { cookie: 'AuthSession=!!', 'x-auth-service-username': 'remote' })).status
    }
    expect([await status('cookie, proxy'), await status('proxy, cookie'), await status('proxy')])
      .to.deep.equal([400, 200, 200])
  })

  it('takes effect with the next request', async () => {
    const order = '{chttpd_auth, proxy_authentication_handler}, {chttpd_auth, default_authentication_handler}'
    await node.put('/_node/_local/_config/chttpd/authentication_handlers', JSON.stringify(order))
    expect((await node.get('/_session')).json.info.authentication_handlers).to.deep.equal(['proxy', 'default'])
  })

  it('may be written in the forms of CouchDB or by names', () => {
    const tuples = '{chttpd_auth, proxy_authentication_handler},{ couch_httpd_auth ,default_authentication_handler }'
    expect(option.parse(tuples)).to.deep.equal(['proxy', 'default'])
    expect(option.parse('cookie, default')).to.deep.equal(['cookie', 'default'])
    expect(option.parse(option.defaultText!)).to.deep.equal(option.default)
    for (const wrong of [
      '', ' , ', 'basic', '{chttpd_auth, party_mode_handler}', 'cookie, cookie', '{chttpd_auth, cookie}',
      '{evil_module, default_authentication_handler}', '{chttpd_auth, default_authentication_handler',
    ]) expect(() => option.parse(wrong), wrong).to.throw()
  })
})

describe('the login page of browsers', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode()
    node.configuration.put('chttpd_auth', 'authentication_redirect', '/app/login')
  })
  afterEach(() => node.stop())

  const open = (accept: string, path = '/_all_dbs?limit=1', more: object = {}): Promise<Answer> =>
    node.get(path, { authorization: '', accept, ...more })

  it('is where a request that needs a login is sent to', async () => {
    await node.put('/db')
    const sent = await open('text/html', '/db/page%20one?rev=1')
    expect([sent.status, sent.headers['location'], sent.json.error]).to.deep.equal([
      302, 'http://node.example:5984/app/login?return=%2Fdb%2Fpage%20one'
        + '&reason=You%20are%20not%20authorized%20to%20access%20this%20db.', 'unauthorized',
    ])
    for (const accept of [
      'text/html;q=0.9, text/plain', 'TEXT/HTML', 'text/*', 'text/html, application/json;q=0', 'text/html,*/*;q=0.0',
    ]) expect((await open(accept)).status, accept).to.equal(302)
    expect((await open('text/html', '/db/a%2Fb/')).headers['location']).to.include('?return=%2Fdb%2Fa%2Fb%2F&')
    const evil = await open('text/html', '/_all_dbs/%0d%0aSet-Cookie:x')
    expect(evil.headers['location'] ?? '').not.to.match(/[\r\n]/)
  })

  it('is not for clients that accept JSON, nor for other errors, nor when none is configured', async () => {
    for (const accept of [
      '', '*/*', 'application/json', 'text/html, application/json', 'text/html,*/*;q=0.1', 'text/html, application/*',
      'text/html;q=0', 'text/*, text/html;q=0', 'text/*;q=0, text/html', 'application/xhtml+xml',
    ]) expect((await open(accept)).status, accept).to.equal(401)
    expect((await open('text/html', '/missing')).status).to.equal(404)
    node.configuration.put('chttpd_auth', 'authentication_redirect', '')
    expect((await open('text/html')).status).to.equal(401)
  })

  it('is not for clients that get a challenge', async () => {
    const challenge = async (more: object = {}): Promise<unknown[]> => {
      const { status, headers } = await open('text/html', '/_all_dbs', more)
      return [status, headers['www-authenticate'], headers['location']]
    }
    expect(await challenge({ 'x-couchdb-www-authenticate': 'Cookie' })).to.deep.equal([401, 'Cookie', undefined])
    node.configuration.put('chttpd', 'require_valid_user', 'true')
    expect(await challenge()).to.deep.equal([401, 'Basic realm="server"', undefined])
    node.configuration.put('chttpd', 'WWW-Authenticate', 'Basic realm="staff"')
    expect(await challenge()).to.deep.equal([401, 'Basic realm="staff"', undefined])
  })

  it('gets the path that the client has sent to a virtual host', async () => {
    node.configuration.put('vhosts', 'node.example:5984', '/_membership')
    expect((await open('text/html', '/a%20b')).headers['location']).to.equal(
      'http://node.example:5984/app/login?return=%2Fa%2520b&reason=You%20are%20not%20a%20server%20admin.',
    )
  })

  it('is on this host', () => {
    for (const wrong of ['login', 'https://evil.example/', '//evil.example', '/\\evil.example', '/a b', '/a\r\nx: y']) {
      expect(() => httpDeclarations.loginPath.parse(wrong), wrong).to.throw('path')
    }
  })
})
