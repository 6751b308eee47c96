import { expect } from 'chai'
import { declaredOptions } from '../src/configuration/declarations.ts'
import { renderDefaultIni } from '../src/configuration/default-ini.ts'
import { parseIni } from '../src/configuration/ini-file.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { MemoryCluster } from './memory-cluster.ts'
import { file, MemoryFiles } from './memory-files.ts'

describe('options that nobody has set', () => {
  let cluster: MemoryCluster
  before(async () => {
    cluster = new MemoryCluster(1)
    await cluster.start(1)
    await cluster.ready()
  })
  after(() => cluster.close())

  const config = async (method: string, name: string, json?: unknown): Promise<unknown> => {
    const { status, body } = await cluster.send(1, method, `/_node/_local/_config/${name}`, json)
    return status === 200 ? body : `${status} ${body.error} ${body.reason}`
  }
  const unknown = '404 not_found unknown_config_value'
  const defaults = parseIni(renderDefaultIni())
  /** Set by the files of the test. */
  const ofTest = new Set([
    'node/name', 'cluster/port', 'cluster/bind_address', 'cluster/advertised_address', 'cluster/seedlist',
    'cluster/secret',
  ])

  it('have their default of default.ini, or are unknown where it is commented out, in every answer', async () => {
    const all = await config('GET', '') as Record<string, Record<string, string>>
    const unset: string[] = []
    for (const { section, key, name } of declaredOptions.filter(option => !ofTest.has(option.name))) {
      const value = defaults.get(section)?.get(key)
      if (value === undefined) unset.push(name)
      else expect(value, `${name} without a default is commented out`).not.to.equal('')
      expect(await config('GET', name), name).to.equal(value ?? unknown)
      expect([name, all[section]?.[key]]).to.deep.equal([name, value])
      expect([name, (await config('GET', section) as Record<string, string>)[key]]).to.deep.equal([name, value])
    }
    expect(unset).to.include.members([
      'chttpd_auth/secret', 'chttpd_auth/public_fields', 'chttpd/config_whitelist', 'cors/origins', 'cors/methods',
      'jwt_auth/jwks_url', 'node/zone',
    ])
  })

  it('are unknown again after they were set and removed', async () => {
    for (const [name, value] of [
      ['cors/origins', 'https://app.example'], ['jwt_auth/issuer', 'https://id.example'], ['cors/methods', 'GET'],
    ] as const) {
      expect(await config('DELETE', name)).to.equal(unknown)
      expect(await config('PUT', name, value)).to.equal('')
      expect(await config('DELETE', name)).to.equal(value)
      expect(await config('GET', name)).to.equal(unknown)
      expect(await config('PUT', name, '')).to.equal('')
      expect(await config('GET', name), 'an empty text is a value').to.equal('')
      expect(await config('DELETE', name)).to.equal('')
      expect(await config('DELETE', name)).to.equal(unknown)
    }
  })

  it('do not change, and need no restart, when a file sets them to an empty text', async () => {
    const names = declaredOptions.filter(({ defaultText, effect }) => defaultText === null && effect === 'restart')
    expect(names.map(({ name }) => name)).to.include('node/zone')
    const files = new MemoryFiles(file('[admins]\nanna = -1\n'))
    const configuration = await LiveConfiguration.load(files, {})
    files.contents = [file(names.map(({ section, key }) => `[${section}]\n${key} =\n`).join('')
      + '[admins]\nanna = -1\n')]
    expect(await configuration.reload()).to.deep.equal([])
    expect(configuration.get('node', 'zone')).to.equal('')
    expect(nodeOptions(configuration.settings())).to.deep.include({ zone: null })
  })
})
