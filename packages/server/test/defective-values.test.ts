import { MemoryLog } from '@sectional/runtime'
import { expect } from 'chai'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { warnOfDefects } from '../src/configuration/defective-values.ts'
import { file, MemoryFiles, refusal } from './memory-files.ts'

describe('values that HTTP must not set, but files may have', () => {
  const open = (text = ''): Promise<LiveConfiguration> => LiveConfiguration.load(
    new MemoryFiles(file(`[admins]\nanna = -hashed-\n${text}`), file('', 'changes.ini')), {})

  /** Expects that a value is refused in both ways of a change, with a reason that has all these parts. */
  async function refused(section: string, key: string, value: string, ...parts: readonly string[]): Promise<void> {
    const configuration = await open()
    const before = configuration.get(section, key)
    for (const persist of [true, false]) {
      const error = await refusal(configuration.set(section, key, value, { persist }))
      expect(error, value).to.include({ status: 400 })
      for (const part of [`${section}/${key}`, ...parts]) expect(error.message).to.contain(part)
    }
    expect(configuration.get(section, key)).to.equal(before)
  }

  async function accepted(section: string, key: string, ...values: readonly string[]): Promise<void> {
    const configuration = await open()
    for (const value of values) await configuration.set(section, key, value, { persist: true })
  }

  it('are secrets of sessions that can be guessed', async () => {
    for (const section of ['chttpd_auth', 'couch_httpd_auth', 'service_httpd_auth']) {
      await refused(section, 'secret', 'x', '****', '1 character', 'at least 16', 'openssl rand -hex 32')
    }
    await refused('chttpd_auth', 'secret', 'fifteen letters', '15 characters')
    await accepted('chttpd_auth', 'secret', 'sixteen letters.', '')
  })

  it('are rules for passwords that no password could meet', async () => {
    for (const section of ['chttpd_auth', 'couch_httpd_auth']) {
      await refused(section, 'password_regexp', '["(a"]', '"(a"', 'no regular expression')
    }
    for (const value of ['["a"', '["a" "b"]', '[{}]', '[a]', '["a",]', '[A-Z]+', '.{10,}', '"a"']) {
      await refused('chttpd_auth', 'password_regexp', value, '[{".{10,}", "Ten characters at least."}, "[A-Z]"]')
    }
    await accepted('chttpd_auth', 'password_regexp', '', '[]', '["a", {"b"}, {"c", "d"}]', 'not a list')
  })

  it('are keys of tokens that can be guessed', async () => {
    const key = (bytes: number): string => Buffer.alloc(bytes, 'x').toString('base64')
    await refused('jwt_keys', 'hmac:a', key(1), '****', '1 byte', 'at least 16', 'openssl rand -base64 32')
    await refused('jwt_keys', 'hmac:a', key(15), '15 bytes')
    await accepted('jwt_keys', 'hmac:a', key(16), key(64))
  })

  it('are whitelists that list nothing', async () => {
    for (const section of ['chttpd', 'httpd']) {
      for (const value of ['nonsense', '{log, level}', '[{log}]', '[{log, level}', '[log/level]']) {
        await refused(section, 'config_whitelist', value, 'a list like [{section, key}, {section, *}]')
      }
      await accepted(section, 'config_whitelist', '', '[]', '[{log, level}, {"uuids", "*"}]')
    }
  })

  it('are warned of at the start and after each change that brings one, and secrets are not shown', async () => {
    const files = new MemoryFiles(file('[admins]\nanna = -hashed-\n[couch_httpd_auth]\nsecret = hunt2\n'
      + '[jwt_keys]\nhmac:a = aHVudDI=\n'))
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.check()
    const log = new MemoryLog()
    const warned = (): unknown[] => log.lines.splice(0).map(({ level, fields, message }) => {
      expect(JSON.stringify([fields, message])).not.to.match(/hunt2|aHVudDI/)
      return [level, `${String(fields['section'])}/${String(fields['key'])}`, String(fields['problem']).slice(0, 19)]
    })
    const end = warnOfDefects(configuration, log)
    expect(warned()).to.deep.equal([
      ['warn', 'chttpd_auth/secret', 'it has 5 characters'], ['warn', 'jwt_keys/hmac:a', 'it has 5 bytes, and'],
    ])
    files.contents = [file(`${files.contents[0]!.text}[chttpd]\nconfig_whitelist = x\n`)]
    await configuration.reload()
    await configuration.set('uuids', 'max_count', '5', { persist: false })
    expect(warned()).to.deep.equal([['warn', 'chttpd/config_whitelist', 'only a list like [{']])
    end()
  })
})
