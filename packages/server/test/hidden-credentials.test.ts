import { httpDeclarations } from '@sectional/http'
import { expect } from 'chai'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { layerSettings, parseOptions } from '../src/configuration/settings.ts'
import { MemoryCluster } from './memory-cluster.ts'
import { file, MemoryFiles, refusal } from './memory-files.ts'

describe('user names and passwords in URLs', () => {
  const urls = [
    'http://anna:hunter2@id.example/keys', 'https://anna:hunter2@id.example/keys', 'http:anna:hunter2@id.example',
    'https://hunter2@id.example/', 'http://anna:hunter2/x@id.example', 'http://anna:hunter2 x@id.example',
    // The cut of long values does not come before the end of the password.
    `http://anna:${'hunter2'.repeat(30)}@id.example/`,
  ]
  const options: readonly (readonly [section: string, key: string])[] = [
    ['jwt_auth', 'jwks_url'], ['jwt_auth', 'issuer'], ['jwt_auth', 'algorithms'], ['jwt_auth', 'required_claims'],
    ['cors', 'origins'], ['cors:app.example', 'origins'], ['vhosts', 'app.example'],
    ['chttpd_auth', 'authentication_redirect'], ['uuids', 'max_count'], ['chttpd', 'bind_address'],
    ['chttpd', 'trusted_proxies'], ['chttpd', 'authentication_handlers'],
  ]
  /** The comma separates items of lists, also in the middle of a password. */
  const all = [...urls, 'https://app.example, http://anna:hunter2,x@id.example']
  const changes = (text = ''): MemoryFiles => new MemoryFiles(file(text), file('', 'changes.ini'))

  it('are not in the errors of the start and of a reload', async () => {
    for (const [section, key] of options) {
      for (const url of all) {
        const wrong = `[${section}]\n${key} = ${url}\n`
        const started = await LiveConfiguration.load(changes(wrong), {})
        const { message } = await refusal(started.check())
        expect(message).to.include(`[${section}] ${key} = "`).and.not.to.include('hunter2')
        const files = changes()
        const running = await LiveConfiguration.load(files, {})
        files.contents = changes(wrong).contents
        expect((await refusal(running.reload())).message).to.include(key).and.not.to.include('hunter2')
      }
    }
    const { message } = await refusal((await LiveConfiguration.load(changes(), {
      SECTIONAL_JWT_AUTH__JWKS_URL: urls[0],
    })).check())
    expect(message).to.equal('SECTIONAL_JWT_AUTH__JWKS_URL: [jwt_auth] jwks_url = "http://****@id.example/keys": '
      + 'only https is allowed, or http to this computer')
  })

  it('are not in the errors of single options', () => {
    const settings = layerSettings([file(`[jwt_auth]\njwks_url = ${urls[0]}\n`)], {})
    expect(() => parseOptions(httpDeclarations, settings)).to.throw('"http://****@id.example/keys"')
      .with.property('message').that.does.not.include('hunter2')
    for (const wrong of [`[node]\nname = ${urls[0]}`, ...all.map(url => `[cluster]\nseedlist = ${url}`)]) {
      expect(() => nodeOptions(layerSettings([file(`${wrong}\n`)], {}))).to.throw('****@')
        .with.property('message').that.does.not.include('hunter2')
    }
  })

  it('are not in the errors of changes over HTTP', async () => {
    const configuration = await LiveConfiguration.load(changes(), {})
    for (const [section, key] of options) {
      for (const url of all) {
        const { message } = await refusal(configuration.set(section, key, url, { persist: true }))
        expect(message).to.include(`${section}/${key} = "`).and.not.to.include('hunter2')
      }
    }
  })

  it('are neither logged nor in the audit stream, and are shown to administrators', async () => {
    const cluster = new MemoryCluster(1, {}, ['[audit]', 'output = log'])
    await cluster.start(1)
    await cluster.ready()
    const policy = 'sandbox;report-uri https://anna:hunter2@log.example/'
    const path = '/_node/_local/_config/csp/showlist_header_value'
    expect(await cluster.send(1, 'PUT', path, policy)).to.deep.include({ status: 200 })
    await cluster.send(1, 'PUT', '/_node/_local/_config/chttpd_auth/same_site', 'https://anna:hunter2@x/')
    expect(await cluster.send(1, 'GET', path)).to.deep.include({ status: 200, body: policy })
    const text = JSON.stringify(cluster.log(1).lines)
    expect(text).to.include('sandbox;report-uri https://****@log.example/').and.include('"configuration_changed"')
      .and.not.to.include('hunter2')
    await cluster.close()
  })
})
