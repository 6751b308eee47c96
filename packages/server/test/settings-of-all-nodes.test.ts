import { expect } from 'chai'
import type { ClusterState } from '@sectional/cluster'
import { httpDeclarations } from '@sectional/http'
import { declaredOptions } from '../src/configuration/declarations.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { combineSettings, putSetting, type IniFile, type Settings } from '../src/configuration/settings.ts'
import { SharedSettings } from '../src/configuration/shared-settings.ts'
import { file, MemoryFiles, refusal } from './memory-files.ts'

describe('settings of all nodes', () => {
  /** The settings that several configurations have in common. */
  class Shared {
    settings: Settings = new Map()
    readonly written: unknown[] = []
    readonly #listeners = new Set<() => void>()
    read(): Settings { return this.settings }
    async write(section: string, key: string, value: string | null): Promise<void> {
      this.written.push([section, key, value])
      const next = combineSettings(this.settings)
      if (value === null) next.get(section)?.delete(key)
      else putSetting(next, section, key, value)
      this.settings = next
      for (const listener of [...this.#listeners]) listener()
    }
    onChange(listener: () => void): () => void {
      this.#listeners.add(listener)
      return () => { this.#listeners.delete(listener) }
    }
  }
  type Pair = readonly [LiveConfiguration, LiveConfiguration]
  const persist = { persist: true }
  const tokenKey = Buffer.alloc(32, 'k').toString('base64')
  const admins = (configuration: LiveConfiguration): unknown => configuration.sections().admins

  /** Returns two nodes with these files. */
  async function nodes(shared: Shared, first: string, second = first): Promise<Pair> {
    const open = async (text: string): Promise<LiveConfiguration> => {
      const configuration = await LiveConfiguration.load(new MemoryFiles(file(text), file('', 'changes.ini')), {})
      configuration.follow(shared)
      return configuration
    }
    return [await open(first), await open(second)]
  }

  it('are changed on all of them, at once and without files', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n')
    const options = b.options(httpDeclarations)
    await a.set('admins', 'bert', '-2', persist)
    await a.set('chttpd', 'authentication_handlers', 'jwt, cookie', persist)
    expect([admins(a), admins(b)]).to.deep.equal([{ anna: '-1', bert: '-2' }, { anna: '-1', bert: '-2' }])
    expect(options.authenticationHandlers).to.deep.equal(['jwt', 'cookie'])
    await b.reload()
    expect(admins(b)).to.deep.equal({ anna: '-1', bert: '-2' })
    await b.delete('admins', 'bert', persist)
    await b.delete('chttpd', 'authentication_handlers', persist)
    expect([admins(a), admins(b)]).to.deep.equal([{ anna: '-1' }, { anna: '-1' }])
    expect(options.authenticationHandlers).to.deep.equal(['cookie', 'default'])
  })

  it('include all that decides whom the handlers admit, so that no node admits more than the others', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n')
    const settings: readonly (readonly [section: string, key: string, value: string])[] = [
      ['chttpd_auth', 'proxy_use_secret', 'true'], ['chttpd_auth', 'x_auth_username', 'X-User'],
      ['chttpd_auth', 'x_auth_roles', 'X-Roles'], ['chttpd_auth', 'x_auth_token', 'X-Token'],
      ['chttpd_auth', 'hash_algorithms', 'sha512'],
      ...declaredOptions.filter(({ section }) => section === 'jwt_auth')
        .map(({ section, key, kind, defaultText }) =>
          [section, key, defaultText ?? (kind === 'https URL' ? 'https://id.example' : 'roles')] as const),
    ]
    for (const [section, key, value] of settings) await a.set(section, key, value, persist)
    expect(settings.length).to.be.above(12)
    for (const [section, key, value] of settings) expect(b.get(section, key), `${section}/${key}`).to.equal(value)
    expect(shared.written.length).to.equal(settings.length)
  })

  it('include the whitelist, so that no other node makes the changes that it refuses', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n')
    const { configWhitelist } = httpDeclarations
    const options = b.options({ configWhitelist })
    await a.set('chttpd', 'config_whitelist', '[{uuids, "*"}]', persist)
    expect(options.configWhitelist).to.equal('[{uuids, "*"}]')
    // The way out when the list does not list itself: an empty one in a file.
    const [c] = await nodes(shared, '[admins]\nanna = -1\n[chttpd]\nconfig_whitelist =\n')
    expect(c.options({ configWhitelist }).configWhitelist).to.equal('')
    await c.delete('chttpd', 'config_whitelist', persist)
    expect(options.configWhitelist).to.equal(undefined)
  })

  it('do not override what a node has in its files, and change it there', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n', '[admins]\nbert = -2\n')
    await a.set('admins', 'bert', '-3', persist)
    expect([admins(a), admins(b)]).to.deep.equal([{ bert: '-3', anna: '-1' }, { bert: '-2' }])
    await a.set('admins', 'anna', '-4', persist)
    await a.set('uuids', 'max_count', '5', persist)
    expect(shared.written).to.deep.equal([['admins', 'bert', '-3']])
    expect([a.get('admins', 'anna'), b.get('admins', 'anna'), b.get('uuids', 'max_count')])
      .to.deep.equal(['-4', undefined, '1000'])
  })

  it('cannot lock administrators out', async () => {
    const [a, b] = await nodes(new Shared(), '[admins]\nanna = -hashed-\n')
    expect(await refusal(a.set('chttpd', 'authentication_handlers', 'jwt', persist))).to.include({ status: 400 })
    await a.set('jwt_keys', 'hmac:a', tokenKey, persist)
    await b.set('chttpd', 'authentication_handlers', 'jwt', persist)
    expect(await refusal(a.delete('jwt_keys', 'hmac:a', persist))).to.include({ status: 400 })
    await b.delete('chttpd', 'authentication_handlers', persist)
    await a.delete('jwt_keys', 'hmac:a', persist)
  })

  it('leave each node the last administrator of its files', async () => {
    const shared = new Shared()
    const [a] = await nodes(shared, '[admins]\nanna = -1\n')
    await a.set('admins', 'bert', '-2', persist)
    expect((await refusal(a.delete('admins', 'anna', persist))).message).to.match(/^anna is the last .* in the files/)
    await a.delete('admins', 'bert', persist)
    expect(admins(a)).to.deep.equal({ anna: '-1' })
  })

  it('are removed together with those of the same name in the files of a node, or not at all', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\nbert = -2\n', '[admins]\nanna = -1\n')
    await b.set('admins', 'bert', '-3', persist)
    const write = shared.write.bind(shared)
    shared.write = async () => { throw new Error('no majority') }
    expect((await refusal(a.delete('admins', 'bert', persist))).message).to.equal('no majority')
    expect([a.get('admins', 'bert'), b.get('admins', 'bert')]).to.deep.equal(['-2', '-3'])
    shared.write = write
    await b.set('admins', 'anna', '-4', persist)
    await a.delete('admins', 'bert', persist)
    expect([admins(a), admins(b)]).to.deep.equal([{ anna: '-1' }, { anna: '-4' }])
  })

  it('stay when a file has a value of the same name that must not be removed', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n', '[admins]\nbert = -2\n')
    await b.set('admins', 'anna', '-3', persist)
    expect(await refusal(a.delete('admins', 'anna', persist))).to.include({ status: 403 })
    expect([a.get('admins', 'anna'), b.get('admins', 'anna')]).to.deep.equal(['-1', '-3'])
  })

  it('can be set for one node without persistence, until a reload or a persistent change', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\n')
    await a.set('admins', 'bert', '-2', { persist: false })
    expect([admins(a), admins(b)]).to.deep.equal([{ anna: '-1', bert: '-2' }, { anna: '-1' }])
    await a.set('admins', 'bert', '-3', persist)
    expect([a.get('admins', 'bert'), b.get('admins', 'bert')]).to.deep.equal(['-3', '-3'])
    expect(await refusal(a.delete('admins', 'bert', { persist: false }))).to.include({ status: 400 })
  })

  it('replace what is in memory only, also while a file is written for another change', async () => {
    const [begun, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    class SlowFiles extends MemoryFiles {
      override async write(changed: IniFile): Promise<void> {
        begun.resolve()
        await written.promise
        await super.write(changed)
      }
    }
    const files = new SlowFiles(file('[admins]\nanna = -1\n'), file('', 'changes.ini'))
    const configuration = await LiveConfiguration.load(files, {})
    configuration.follow(new Shared())
    await configuration.set('admins', 'bert', '-2', { persist: false })
    const other = configuration.set('uuids', 'max_count', '5', persist)
    await begun.promise
    const shared = configuration.set('admins', 'bert', '-3', persist)
    setImmediate(written.resolve)
    await Promise.all([other, shared])
    expect([configuration.get('admins', 'bert'), configuration.get('uuids', 'max_count')]).to.deep.equal(['-3', '5'])
  })

  it('are not set or removed for all nodes where a file has one that was removed in memory only', async () => {
    const shared = new Shared()
    const [a, b] = await nodes(shared, '[admins]\nanna = -1\nbert = -2\n', '[admins]\nanna = -1\n')
    const inMemory = { persist: false }
    await b.set('admins', 'bert', '-3', persist)
    await a.delete('admins', 'bert', inMemory)
    await a.set('admins', 'bert', '-4', inMemory)
    await a.set('admins', 'bert', '-5', persist)
    expect([a.get('admins', 'bert'), b.get('admins', 'bert')]).to.deep.equal(['-5', '-3'])
    await a.reload()
    expect(a.get('admins', 'bert')).to.equal('-5')
    await a.delete('admins', 'bert', inMemory)
    await a.delete('admins', 'bert', persist)
    await a.reload()
    expect([admins(a), admins(b)]).to.deep.equal([{ anna: '-1' }, { anna: '-1' }])
    await a.set('admins', 'bert', '-6', persist)
    expect([a.get('admins', 'bert'), b.get('admins', 'bert')]).to.deep.equal(['-6', '-6'])
  })

  it('stay those of a node whose file still has one that was removed over HTTP', async () => {
    const shared = new Shared()
    const files = new MemoryFiles(file('[admins]\nanna = -1\n[jwt_auth]\naudience = a\n'), file('', 'changes.ini'))
    const configuration = await LiveConfiguration.load(files, {})
    configuration.follow(shared)
    await configuration.delete('jwt_auth', 'audience', persist)
    expect(configuration.get('jwt_auth', 'audience')).to.equal(undefined)
    await configuration.set('jwt_auth', 'audience', 'b', persist)
    await configuration.reload()
    expect([configuration.get('jwt_auth', 'audience'), shared.written]).to.deep.equal(['b', []])
    files.contents = [file('[admins]\nanna = -1\n'), file('', 'changes.ini')]
    await configuration.reload()
    await configuration.set('jwt_auth', 'audience', 'c', persist)
    expect(shared.written).to.deep.equal([['jwt_auth', 'audience', 'c']])
  })

  it('are bounded, and those that a node does not accept are left out', async () => {
    let settings: Record<string, string> = { 'config/uuids/max_count': '5', 'config/jwt_keys/hmac:a': '-', 'x/y': 'z' }
    const control = {
      state: () => ({ settings }) as ClusterState, onChange: () => () => {},
      setSetting: async (section: string, key: string, value: string | null) => {
        settings = { ...settings, [`${section}/${key}`]: value! }
      },
    }
    const shared = new SharedSettings(control)
    expect(shared.read()).to.deep.equal(new Map())
    for (let index = 0; index < 998; index++) await shared.write('admins', `a/${index}`, '-1')
    expect(shared.read().get('admins')?.size).to.equal(998)
    expect(shared.read()).to.equal(shared.read())
    expect(await refusal(shared.write('admins', 'more', '-1'))).to.include({ status: 400 })
    expect(await refusal(shared.write('admins', 'a/1', 'x'.repeat(20_000)))).to.include({ status: 400 })
    await shared.write('admins', 'a/1', '-2')
    expect(shared.read().get('admins')?.get('a/1')).to.equal('-2')
  })
})
