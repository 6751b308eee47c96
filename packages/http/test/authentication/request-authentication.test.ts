import { expect } from 'chai'
import { httpDeclarations } from '@sectional/http'
import { basic, MemoryNode } from '../memory-node.ts'

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
