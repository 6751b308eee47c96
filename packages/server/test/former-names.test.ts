import { httpDeclarations, type HttpOptions } from '@sectional/http'
import { expect } from 'chai'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import type { IniFile } from '../src/configuration/settings.ts'
import { unknownNames } from '../src/configuration/unknown-options.ts'

const persist = { persist: true }

describe('options under former names', () => {
  let files: IniFile[]
  const load = async (
    text: string, environment: Record<string, string> = {},
  ): Promise<{ configuration: LiveConfiguration; options: HttpOptions }> => {
    files = [{ name: 'local.ini', text }, { name: 'changes.ini', text: '' }]
    const configuration = await LiveConfiguration.load({
      read: async () => files, write: async changed => { files[1] = changed },
    }, environment)
    return { configuration, options: configuration.options(httpDeclarations) }
  }
  const refusal = (work: Promise<unknown>): Promise<string> =>
    work.then(() => 'not refused', (error: Error) => error.message)

  it('are read from files and from the environment', async () => {
    const { configuration, options } = await load([
      '[couch_httpd_auth]', 'timeout = 1234', 'require_valid_user = true', 'secret = from the file',
      '[service_httpd_auth]', 'timeout = 77', 'iterations = 11',
      '[httpd]', 'enable_cors = true', 'WWW-Authenticate = Basic realm="x"', 'port = 5986', 'bind_address = 10.0.0.1',
      'authentication_handlers = {couch_httpd_oauth, oauth_authentication_handler}', '',
    ].join('\n'), { SECTIONAL_SERVICE_HTTPD_AUTH__COOKIE_DOMAIN: 'x.example' })
    await configuration.check()
    expect(options).to.deep.include({
      sessionSeconds: 1234, requireValidUser: true, sessionSecret: 'from the file', passwordIterations: 11,
      cookieDomain: 'x.example', crossOriginEnabled: true, wwwAuthenticate: 'Basic realm="x"',
      authenticationHandlers: ['cookie', 'default'],
    })
    expect(nodeOptions(configuration.settings()).http).to.deep.equal({ host: '127.0.0.1', port: 5984 })
    expect(configuration.get('chttpd_auth', 'timeout')).to.equal('1234')
    expect(unknownNames(configuration.settings()).map(name => name.join('/')).sort()).to.deep.equal([
      'httpd/authentication_handlers', 'httpd/bind_address', 'httpd/port',
    ])
  })

  it('have no effect where the present name is set, in whatever source', async () => {
    const { configuration, options } = await load([
      '[chttpd_auth]', 'timeout = 5', 'require_valid_user = true', '[couch_httpd_auth]', 'timeout = 1234', '[chttpd]',
      'require_valid_user = false', '',
    ].join('\n'))
    expect(options).to.deep.include({ sessionSeconds: 5, requireValidUser: false })
    await configuration.delete('chttpd', 'require_valid_user', persist)
    expect(options.requireValidUser, 'the changes have no such setting').to.equal(true)
    await configuration.set('chttpd', 'require_valid_user', 'false', persist)
    expect(options.requireValidUser).to.equal(false)
  })

  it('are set, and removed, over HTTP', async () => {
    const { configuration, options } = await load('')
    await configuration.set('couch_httpd_auth', 'timeout', '1234', persist)
    await configuration.set('httpd', 'enable_cors', 'true', { persist: false })
    expect(options).to.deep.include({ sessionSeconds: 1234, crossOriginEnabled: true })
    expect(files[1]!.text).to.include('[couch_httpd_auth]\ntimeout = 1234')
    await configuration.reload()
    expect(options).to.deep.include({ sessionSeconds: 1234, crossOriginEnabled: false })
    await configuration.delete('couch_httpd_auth', 'timeout', persist)
    expect(options.sessionSeconds).to.equal(600)
  })

  it('have the limits of the present names, and are secret where these are', async () => {
    const wrong = '[couch_httpd_auth]\ntimeout = soon\n'
    const { configuration } = await load('')
    files = [{ name: 'local.ini', text: wrong }, { name: 'changes.ini', text: '' }]
    expect(await refusal(configuration.check()))
      .to.match(/^local\.ini line 2: \[couch_httpd_auth\] timeout = "soon": only/).and.not.to.include('\n')
    expect(await refusal(configuration.set('service_httpd_auth', 'hash_algorithms', 'md5', persist)))
      .to.include('service_httpd_auth/hash_algorithms = "md5": md5 is no digest')
    expect(await refusal(configuration.set('httpd', 'config_blacklist', '[]', persist)))
      .to.include('only in the configuration files or the environment')
    expect([configuration.isSecret('couch_httpd_auth', 'secret'), configuration.isLogged('couch_httpd_auth', 'secret')])
      .to.deep.equal([true, false])
  })
})
