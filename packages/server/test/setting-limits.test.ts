import type { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { LiveConfiguration, type ConfigurationFiles } from '../src/configuration/live-configuration.ts'
import type { IniFile } from '../src/configuration/settings.ts'

class MemoryFiles implements ConfigurationFiles {
  contents: readonly IniFile[]
  constructor(mine: string, changes: string) {
    this.contents = [{ name: 'local.ini', text: mine }, { name: 'changes.ini', text: changes }]
  }
  async read() { return this.contents }
  async write(changed: IniFile) {
    this.contents = this.contents.map(file => file.name === changed.name ? changed : file)
  }
}

const persist = { persist: true }
const inMemory = { persist: false }

describe('settings that HTTP adds', () => {
  const refused = (work: Promise<unknown>): Promise<ApiError> =>
    work.then(() => { throw new Error('it was not refused') }, (error: ApiError) => error)
  const entries = (count: number): string =>
    `[x]\n${Array.from({ length: count }, (_, index) => `k${index} = 1`).join('\n')}\n`

  it('have names and values of limited length', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles('', ''), {})
    await configuration.set('s'.repeat(256), 'k'.repeat(256), 'v'.repeat(16_384), persist)
    const long = [
      ['s'.repeat(512), 'k', ''], ['s', 'k'.repeat(512), ''], ['chttpd', 'server_options', 'x'.repeat(16_385)],
      ['vhosts', 'a.example', `/${'x'.repeat(16_385)}`],
    ] as const
    for (const [section, key, value] of long) {
      for (const options of [persist, inMemory]) {
        const { status, message } = await refused(configuration.set(section, key, value, options))
        expect(status).to.equal(400)
        expect(message).to.match(/have 513 characters together; over HTTP they may have 512|has 1638\d characters; /)
          .and.to.include('write it to a configuration file of the node').and.to.have.length.below(400)
      }
    }
  })

  it('are limited in number, in the file and in memory', async () => {
    const files = new MemoryFiles('', entries(998))
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.set('y', 'one', '1', persist)
    await configuration.set('y', 'two', '1', inMemory)
    for (const options of [persist, inMemory]) {
      const { status, message } = await refused(configuration.set('y', 'three', '1', options))
      expect([status, message]).to.deep.equal([400, 'y/three: this node has 1000 settings that were changed over HTTP, '
        + 'and may have no more. Remove some, or write it to a configuration file of the node.'])
    }
    await configuration.set('x', 'k0', '2', persist)
    await configuration.set('uuids', 'max_count', '2', persist)
    await configuration.delete('x', 'k0', persist)
    await configuration.delete('x', 'k1', persist)
    await configuration.set('y', 'three', '1', persist)
  })

  it('do not count what the operator has in other files', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(entries(1500), ''), {})
    await configuration.set('y', 'one', '1', persist)
    await configuration.reload()
    expect(configuration.get('x', 'k1499')).to.equal('1')
  })

  it('leave nothing in the file when they are removed', async () => {
    const files = new MemoryFiles('', '; head\n')
    const configuration = await LiveConfiguration.load(files, {})
    for (let index = 0; index < 20; index++) {
      await configuration.set(`s${index}`, 'k', '1', persist)
      await configuration.delete(`s${index}`, 'k', persist)
    }
    expect(files.contents[1]!.text).to.equal('; head\n')
  })
})
