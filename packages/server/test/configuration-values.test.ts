import type { ApiError } from '@sectional/core'
import { httpDeclarations } from '@sectional/http'
import { expect } from 'chai'
import { LiveConfiguration, type ConfigurationFiles } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { processDeclarations } from '../src/configuration/node-declarations.ts'
import { layerSettings, parseOptions, type IniFile } from '../src/configuration/settings.ts'

class MemoryFiles implements ConfigurationFiles {
  contents: readonly IniFile[] = [{ name: 'changed-over-http.ini', text: '' }]
  async read() { return this.contents }
  async write(changed: IniFile) { this.contents = [changed] }
}

describe('values of settings', () => {
  let configuration: LiveConfiguration
  beforeEach(async () => { configuration = await LiveConfiguration.load(new MemoryFiles(), {}) })

  /** Returns the status with which a change is refused; 200 when it is accepted. */
  async function set(name: string, value: string): Promise<number> {
    const [section, key] = name.split('/') as [string, string]
    return configuration.set(section, key, value, { persist: true }).then(() => 200, (error: ApiError) => error.status)
  }

  it('that are sent in headers can be sent', async () => {
    const { wwwAuthenticate, jsonDefaultType, crossOriginMethods, crossOriginExposedHeaders, attachmentPolicy,
      responsePolicy, cookieDomain } = httpDeclarations
    for (const { name } of [wwwAuthenticate, jsonDefaultType, crossOriginMethods, crossOriginExposedHeaders,
      attachmentPolicy, responsePolicy, cookieDomain]) {
      for (const value of ['text/\u20ac', 'a\u0000b', 'a\u007fb', 'x'.repeat(5000)]) {
        expect(await set(name, value), `${name} = ${value.slice(0, 20)}`).to.equal(400)
      }
    }
    expect(await set('chttpd/json_default_type', 'application/json; charset=utf-8')).to.equal(200)
    expect(await set('chttpd_auth/cookie_domain', 'x; Path=/other')).to.equal(400)
    for (const domain of ['', '.example.org', 'db-1.example.org']) {
      expect(await set('chttpd_auth/cookie_domain', domain), domain).to.equal(200)
    }
  })

  it('that name headers are no members of all objects', async () => {
    for (const name of ['chttpd/peer_header', 'chttpd_auth/x_auth_username', 'chttpd_auth/x_auth_roles']) {
      for (const value of ['__proto__', 'Constructor', 'a b']) {
        expect(await set(name, value), value).to.equal(400)
      }
      expect(await set(name, 'X-Forwarded-For')).to.equal(200)
    }
    expect(await set('chttpd/peer_header', '')).to.equal(200)
  })

  it('that name headers of requests are not Set-Cookie, which has several values', async () => {
    for (const name of ['chttpd/peer_header', 'chttpd_auth/x_auth_username', 'chttpd/x_forwarded_host']) {
      for (const value of ['Set-Cookie', 'set-cookie']) expect(await set(name, value), value).to.equal(400)
      expect(await set(name, 'X-Example')).to.equal(200)
    }
  })

  it('that list trusted proxies are addresses', async () => {
    for (const value of ['proxy.example.org', '10.0.0.0/33', '10.0.0.256', 'fd00::/8', '10.0.0.1 10.0.0.2']) {
      expect(await set('chttpd/trusted_proxies', value), value).to.equal(400)
    }
    expect(await set('chttpd/trusted_proxies', '127.0.0.1, ::1, fd00::10, 10.0.0.0/8, 0.0.0.0/0')).to.equal(200)
    expect(await set('chttpd/trusted_proxies', '')).to.equal(200)
  })

  it('that name digests of sessions are known ones', async () => {
    for (const value of ['md5', '', 'sha3', 'SHA256', '["sha256","sha"]', 'sha256, md5', '__proto__']) {
      expect(await set('chttpd_auth/hash_algorithms', value), value).to.equal(400)
    }
    expect(await set('chttpd_auth/hash_algorithms', 'sha512, sha256,sha')).to.equal(200)
    const file: IniFile = { name: 'local.ini', text: '[chttpd_auth]\nhash_algorithms = md5\n' }
    expect(() => nodeOptions(layerSettings([file], {}))).to.throw(/"md5": md5 is no digest; known: sha/)
  })

  it('that name the database of users are the name of the only one', async () => {
    for (const value of ['accounts', '', '_USERS']) {
      expect(await set('chttpd_auth/authentication_db', value), value).to.equal(400)
    }
    expect(await set('chttpd_auth/authentication_db', '_users')).to.equal(200)
    const file: IniFile = { name: 'local.ini', text: '[couch_httpd_auth]\nauthentication_db = accounts\n' }
    expect(() => nodeOptions(layerSettings([file], {}))).to.throw(/"accounts": only _users is allowed/)
  })

  it('that limit addresses leave that of the limit within it', async () => {
    for (const value of ['40', '127', '0']) expect(await set('chttpd/max_uri_length', value), value).to.equal(400)
    for (const value of ['128', 'infinity']) expect(await set('chttpd/max_uri_length', value), value).to.equal(200)
  })

  it('of the default.ini of CouchDB are accepted', async () => {
    const text = [
      '[log]', 'level = notice', '[chttpd]', 'bind_address = any', '[chttpd_auth]', 'max_iterations = 1000000000', '',
    ].join('\n')
    const settings = layerSettings([{ name: 'local.ini', text }], {})
    expect(nodeOptions(settings).http.host).to.equal('::')
    expect(parseOptions(processDeclarations, settings).logLevel).to.equal('info')
    expect(parseOptions(httpDeclarations, settings).passwordIterationsMax).to.equal(10_000_000)
    expect(await set('chttpd_auth/max_iterations', '1000000000')).to.equal(200)
    expect(await set('chttpd_auth/max_iterations', '1000000001')).to.equal(400)
    const levels = {
      debug: 'debug', info: 'info', notice: 'info', warning: 'warn', warn: 'warn', error: 'error', err: 'error',
      critical: 'error', crit: 'error', alert: 'error', emergency: 'error', emerg: 'error', none: 'silent',
      silent: 'silent',
    }
    for (const [level, ours] of Object.entries(levels)) {
      expect(processDeclarations.logLevel.parse(level), level).to.equal(ours)
      expect(await set('log/level', level), level).to.equal(200)
    }
    for (const level of ['NOTICE', 'toString', '']) expect(await set('log/level', level), level).to.equal(400)
  })

  it('of the cross-origin options of one host have the limits of those of all hosts', async () => {
    expect(await set('cors:app.example/max_age', '-1')).to.equal(400)
    expect(await set('cors:app.example/colour', 'red'), 'no such option').to.equal(400)
    expect(await set('cors:app.example/origins', 'http://app.example')).to.equal(200)
    const file: IniFile = { name: 'local.ini', text: '[cors:app.example]\nmax_age = x\n' }
    expect(() => nodeOptions(layerSettings([file], {}))).to.throw(/\[cors:app.example\] max_age/)
  })
})
