import type { ApiError } from '@sectional/core'
import { httpDeclarations } from '@sectional/http'
import { expect } from 'chai'
import { LiveConfiguration, type ConfigurationFiles } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { layerSettings, type IniFile } from '../src/configuration/settings.ts'

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

  it('that list trusted proxies are addresses', async () => {
    for (const value of ['proxy.example.org', '10.0.0.0/33', '10.0.0.256', 'fd00::/8', '10.0.0.1 10.0.0.2']) {
      expect(await set('chttpd/trusted_proxies', value), value).to.equal(400)
    }
    expect(await set('chttpd/trusted_proxies', '127.0.0.1, ::1, fd00::10, 10.0.0.0/8, 0.0.0.0/0')).to.equal(200)
    expect(await set('chttpd/trusted_proxies', '')).to.equal(200)
  })

  it('of the cross-origin options of one host have the limits of those of all hosts', async () => {
    expect(await set('cors:app.example/max_age', '-1')).to.equal(400)
    expect(await set('cors:app.example/colour', 'red'), 'no such option').to.equal(400)
    expect(await set('cors:app.example/origins', 'http://app.example')).to.equal(200)
    const file: IniFile = { name: 'local.ini', text: '[cors:app.example]\nmax_age = x\n' }
    expect(() => nodeOptions(layerSettings([file], {}))).to.throw(/\[cors:app.example\] max_age/)
  })
})
