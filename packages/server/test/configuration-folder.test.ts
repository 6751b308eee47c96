import { execFileSync } from 'node:child_process'
import {
  lstatSync, mkdtempSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { changesPath, ConfigurationFolder } from '../src/command-line/configuration-folder.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'

const persist = { persist: true }

describe('the folder of the configuration', () => {
  let folder: string
  beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'configuration-')) })
  afterEach(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string): void => {
    mkdirSync(join(folder, 'local.d'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }

  it('is read in the order of names, and the file of the node last', async () => {
    for (const name of ['local.ini', 'local.d/z.ini', 'local.d/a.ini', 'local.d/changed-over-http.ini']) write(name, '')
    write('local.d/note.txt', '[uuids]\nmax_count = 1\n')
    expect((await new ConfigurationFolder([folder]).read()).map(({ name }) => basename(name)))
      .to.deep.equal(['default.ini', 'local.ini', 'a.ini', 'z.ini', 'changed-over-http.ini'])
  })

  it('gets the changes in a file of the node, whose folder is made, and keeps all others', async () => {
    const mine = '; mine\n[uuids]\nmax_count = 5 ; why\n'
    writeFileSync(join(folder, 'local.ini'), mine)
    const load = (): Promise<LiveConfiguration> => LiveConfiguration.load(new ConfigurationFolder([folder]), {})
    const configuration = await load()
    await configuration.set('uuids', 'max_count', '7', persist)
    expect(readFileSync(join(folder, 'local.ini'), 'utf8')).to.equal(mine)
    expect(changesPath(folder)).to.equal(join(folder, 'local.d/changed-over-http.ini'))
    expect(readFileSync(changesPath(folder), 'utf8'))
      .to.match(/^; Written by the node.*\n\n\[uuids\]\nmax_count = 7\n$/s)
    expect(statSync(changesPath(folder)).mode & 0o777).to.equal(0o600)
    expect((await load()).get('uuids', 'max_count')).to.equal('7')
    await configuration.delete('uuids', 'max_count', persist)
    expect((await load()).get('uuids', 'max_count')).to.equal('5')
  })

  it('may be a single file, beside which the file of the node is', async () => {
    for (const name of ['one.ini', 'two.ini']) writeFileSync(join(folder, name), '')
    const [one, two] = [join(folder, 'one.ini'), join(folder, 'two.ini')]
    const configuration = await LiveConfiguration.load(new ConfigurationFolder([one]), {})
    await configuration.set('uuids', 'max_count', '7', persist)
    expect(statSync(join(folder, 'one.changed-over-http.ini')).isFile()).to.equal(true)
    const other = await LiveConfiguration.load(new ConfigurationFolder([two]), {})
    expect(other.get('uuids', 'max_count')).to.equal('1000')
  })

  it('may have links to files elsewhere, in which passwords are replaced too', async () => {
    mkdirSync(join(folder, 'elsewhere'))
    mkdirSync(join(folder, 'configuration'))
    const [link, target] = [join(folder, 'configuration', 'local.ini'), join(folder, 'elsewhere', 'mine.ini')]
    writeFileSync(target, '[admins]\nanna = secret\n', { mode: 0o644 })
    symlinkSync('../elsewhere/mine.ini', link)
    const files = new ConfigurationFolder([join(folder, 'configuration')])
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.replace('admins', async () => '-hashed-')
    expect(readFileSync(target, 'utf8')).to.equal('[admins]\nanna = -hashed-\n')
    expect([lstatSync(link).isSymbolicLink(), statSync(target).mode & 0o777]).to.deep.equal([true, 0o600])
  })

  it('has files in UTF-8, since others would be damaged when a password in them is replaced', async () => {
    writeFileSync(join(folder, 'local.ini'), Buffer.from('[admins]\nanna = secret\n; caf\u00e9\n', 'latin1'))
    const error = await new ConfigurationFolder([folder]).read().then(() => null, (reason: unknown) => reason)
    expect(error).to.match(/local\.ini cannot be read: line 3 is not UTF-8/)
    writeFileSync(join(folder, 'local.ini'), '\ufeff; caf\u00e9\n')
    expect((await new ConfigurationFolder([folder]).read())[1]!.text).to.equal('\ufeff; caf\u00e9\n')
  })

  it('must not contain pipes, which would block the node', async () => {
    mkdirSync(join(folder, 'local.d'))
    execFileSync('mkfifo', [join(folder, 'local.d', 'a.ini')])
    const error = await new ConfigurationFolder([folder]).read().then(() => null, (reason: unknown) => reason)
    expect(error).to.match(/a\.ini cannot be read: it is not a regular file/)
  })
})
