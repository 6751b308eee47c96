import { readFileSync, readdirSync } from 'node:fs'
import { ApiError } from '@sectional/core'
import { httpDeclarations } from '@sectional/http'
import { defaultCompactionOptions } from '@sectional/shard'
import { expect } from 'chai'
import fc from 'fast-check'
import { prepareAdministrators } from '../src/configuration/administrators.ts'
import { renderDefaultIni, renderOptionTables } from '../src/configuration/default-ini.ts'
import { declaredOptions } from '../src/configuration/declarations.ts'
import { editIni, fitsIni, parseIni } from '../src/configuration/ini-file.ts'
import { LiveConfiguration, type ConfigurationFiles } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { unknownOptions } from '../src/configuration/unknown-options.ts'
import { ConfigurationError, layerSettings, type IniFile } from '../src/configuration/settings.ts'

const secret = 's'.repeat(32)

function file(text: string, name = 'local.ini'): IniFile {
  return { name, text }
}

class MemoryFiles implements ConfigurationFiles {
  contents: IniFile[]
  constructor(...contents: IniFile[]) { this.contents = contents }
  async read() { return this.contents }
  async write(changed: IniFile) {
    this.contents = this.contents.map(content =>
      content.name === changed.name ? { ...content, text: changed.text } : content)
  }
}

async function refusal(promise: Promise<unknown>): Promise<Error> {
  return promise.then(() => { throw new Error('it was not refused') }, (error: Error) => error)
}

describe('INI files', () => {
  it('read values as written, without trailing comments', () => {
    const text = '; head\n[a]\nkey=v # kept; kept too ; comment\n  spaced   =  "q" \nwith=equals = 1\n[a.b]\nx = \n'
    expect(parseIni(text)).to.deep.equal(new Map([
      ['a', new Map([['key', 'v # kept; kept too'], ['spaced', '"q"'], ['with=equals', '1']])],
      ['a.b', new Map([['x', '']])],
    ]))
  })

  it('are edited in place and keep their comments', () => {
    const text = '[a]\n; why\nx = 1\n\n[b]\ny = 2\n'
    expect(editIni(text, 'a', 'x', '3')).to.equal('[a]\n; why\nx = 3\n\n[b]\ny = 2\n')
    expect(editIni(text, 'a', 'z', '3')).to.equal('[a]\n; why\nx = 1\nz = 3\n\n[b]\ny = 2\n')
    expect(editIni(text, 'c', 'z', '3')).to.equal('[a]\n; why\nx = 1\n\n[b]\ny = 2\n\n[c]\nz = 3\n')
    expect(editIni(text, 'b', 'y', null)).to.equal('[a]\n; why\nx = 1\n\n[b]\n')
    expect(editIni('', 'a', 'x', '1')).to.equal('[a]\nx = 1\n')
  })

  it('return every value that they can hold after any series of edits', () => {
    const word = fc.string({ minLength: 1, maxLength: 6, unit: fc.constantFrom(...'ab =;#"\\[]. \t') })
      .map(text => text.trim())
    fc.assert(fc.property(fc.array(fc.tuple(word, word, fc.option(word))), edits => {
      const expected = new Map<string, Map<string, string>>()
      let text = '; comment\n'
      for (const [section, key, value] of edits) {
        if (!fitsIni(section, key, value ?? '')) continue
        text = editIni(text, section, key, value)
        if (value === null) expected.get(section)?.delete(key)
        else expected.set(section, (expected.get(section) ?? new Map()).set(key, value))
      }
      expect(parseIni(text)).to.deep.equal(expected)
    }))
  })
})

describe('settings', () => {
  it('are layered: defaults, files in order, environment', () => {
    const settings = layerSettings([file('[cluster]\nq = 2\nn = 2\n'), file('[cluster]\nq = 3\n', 'local.d/a.ini')], {
      SECTIONAL_CLUSTER__N: '1', SECTIONAL_ADMINS__Anna: 'x', SECTIONAL_HOME: '/x', PATH: '/y',
    })
    expect(settings.get('cluster')?.get('q')).to.equal('3')
    expect(settings.get('cluster')?.get('n')).to.equal('1')
    expect(settings.get('admins')?.get('Anna')).to.equal('x')
    expect(settings.get('chttpd')?.get('port')).to.equal('5984')
  })

  it('that are wrong are refused with section, key, value and the allowed values', () => {
    const settings = layerSettings([file('[chttpd]\nport = 70000\n[log]\nlevel = loud\n')], {})
    const problems = [
      '[chttpd] port = "70000": only an integer from 0 to 65535 is allowed; default "5984"',
      '[log] level = "loud": only debug, info, warn, error, silent are allowed; default "info"',
    ]
    expect(() => nodeOptions(settings)).to.throw(ConfigurationError, problems.join('\n'))
  })

  it('that are not declared are reported, each with the declared one that was probably meant', () => {
    const text = '[chttpd]\nportt = 1\nzzzzzz = 1\nport = 1\n[couchdb]\nbind_adress = x\nport = 2\n'
      + '[chttp]\nmax_uri_length = 5\n[admins]\nanna = pw\n[vendor]\nname = x\n'
    const found = unknownOptions(layerSettings([file(text)], {}))
      .map(({ section, key, nearest }) => [`${section}/${key}`, nearest])
    expect(Object.fromEntries(found)).to.deep.equal({
      'chttpd/portt': 'chttpd/port', 'chttpd/zzzzzz': undefined, 'couchdb/bind_adress': 'cluster/bind_address',
      'couchdb/port': 'cluster/port', 'chttp/max_uri_length': 'chttpd/max_uri_length', 'vendor/name': 'node/name',
    })
  })

  it('become frozen options', () => {
    const options = nodeOptions(
      layerSettings([file(`[cluster]\nseedlist = a:1, b:2\nsecret = ${secret}\n[node]\nname = n@h\n`)], {}),
    )
    expect(options.cluster).to.deep.equal({
      listen: { host: '127.0.0.1', port: 15984 }, advertised: '127.0.0.1:15984', seeds: ['a:1', 'b:2'], secret,
      formationGraceMs: 2000,
    })
    expect(options.name).to.equal('n@h')
    expect(Object.isFrozen(options) && Object.isFrozen(options.cluster)).to.equal(true)
  })

  it('let a node without a secret form its cluster at once, since no other node can know it', () => {
    expect(nodeOptions(layerSettings([], {})).cluster.formationGraceMs).to.equal(0)
    const text = `[cluster]\nsecret = ${secret}\nformation_grace_ms = 50\n`
    expect(nodeOptions(layerSettings([file(text)], {})).cluster.formationGraceMs).to.equal(50)
  })

  it('set when shards are compacted automatically', () => {
    const { compaction } = nodeOptions(layerSettings([], {}))
    expect({ ...defaultCompactionOptions, ...compaction }).to.deep.equal(defaultCompactionOptions)
    const text =
      '[compaction]\nreplaced_bytes = infinity\nreplaced_percent = 20\ncheck_interval_ms = 5\nrest_percent = 0\n'
    expect(nodeOptions(layerSettings([file(text)], {})).compaction).to.deep.equal({
      replacedBytesMin: Infinity, replacedPartMin: 0.2, checkIntervalMs: 5, restPart: 0,
    })
  })

  it('need a long secret as soon as the cluster has another node', () => {
    const options = (text: string) => () => nodeOptions(layerSettings([file(`[cluster]\n${text}`)], {}))
    expect(options('seedlist = a:1\n')).to.throw('[cluster] secret has 0 characters')
    expect(options('secret = short\n')).to.throw('[cluster] secret has 5 characters')
    expect(options('seedlist = 127.0.0.1:15984\n')().cluster.secret).to.equal(null)
  })

  it('need an address to which other nodes can connect', () => {
    const settings = layerSettings(
      [file(`[cluster]\nbind_address = 0.0.0.0\nseedlist = a:1\nsecret = ${secret}\n`)], {},
    )
    expect(() => nodeOptions(settings)).to.throw('[cluster] advertised_address is empty')
  })

  it('are declared once, and the HTTP layer reads none of them as text', () => {
    const names = declaredOptions.map(option => option.name)
    expect(names.filter((name, index) => names.indexOf(name) < index)).to.deep.equal([])
    const folder = new URL('../../http/src/', import.meta.url)
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'))
    const texts = sources.map(name => readFileSync(new URL(name, folder), 'utf8'))
    const reads = texts.flatMap(source => [...source.matchAll(/\.get\('([a-z_]+)', /g)])
    expect(new Set(reads.map(([, section]) => section))).to.deep.equal(new Set(['admins']))
  })

  it('have defaults that they allow themselves', () => {
    const defaults = layerSettings([], {})
    const texts = declaredOptions.filter(option => option.defaultText !== null)
    expect(texts).to.have.length.above(80)
    for (const option of texts) {
      expect(option.parse(defaults.get(option.section)!.get(option.key)!), option.name).to.deep.equal(option.default)
    }
  })

  it('are documented as declared: run scripts/generate-configuration.mjs', () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
    expect(read('../default.ini')).to.equal(renderDefaultIni())
    expect(read('../../../docs/configuration.md')).to.contain(renderOptionTables())
    expect(() => nodeOptions(layerSettings([file(renderDefaultIni())], {}))).not.to.throw()
  })
})

describe('the live configuration', () => {
  it('writes changes to the last file and shows them at once', async () => {
    const files = new MemoryFiles(file('[cluster]\nq = 2\n'), file('; notes\n[x]\n', 'local.d/z.ini'))
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.set('cluster', 'q', '4', { persist: true })
    expect(configuration.get('cluster', 'q')).to.equal('4')
    expect(configuration.sections().cluster?.q).to.equal('4')
    expect(files.contents.map(content => content.text)).to.deep.equal([
      '[cluster]\nq = 2\n', '; notes\n[x]\n\n[cluster]\nq = 4\n',
    ])
  })

  it('tells secrets from other values', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    const isSecret = (section: string, key: string): boolean => configuration.isSecret(section, key)
    expect([isSecret('cluster', 'secret'), isSecret('chttpd_auth', 'secret'), isSecret('jwt_keys', 'hmac:a')])
      .to.deep.equal([true, true, true])
    expect([isSecret('chttpd_auth', 'timeout'), isSecret('x', 'secret')]).to.deep.equal([false, false])
  })

  it('refuses keys of tokens that cannot be used, without showing them', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    const refused = await refusal(configuration.set('jwt_keys', 'rsa:a', 'c2VjcmV0', { persist: true }))
    expect(refused.message).to.include('jwt_keys/rsa:a').and.not.to.include('c2VjcmV0')
    await configuration.set('jwt_keys', 'hmac:a=b', 'c2VjcmV0', { persist: true })
    expect(configuration.get('jwt_keys', 'hmac:a=b')).to.equal('c2VjcmV0')
    const settings = layerSettings([file('[jwt_keys]\nhmac:a = not-base64!\n')], {})
    expect(() => nodeOptions(settings)).to.throw(/\[jwt_keys\] hmac:a: (?!.*not-base64)/)
  })

  it('discards changes that were not persisted at a reload', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('[x]\na = 1\n')), {})
    await configuration.set('x', 'a', '2', { persist: false })
    await configuration.set('x', 'b', '3', { persist: false })
    expect(configuration.sections().x).to.deep.equal({ a: '2', b: '3' })
    await configuration.reload()
    expect(configuration.sections().x).to.deep.equal({ a: '1' })
  })

  it('deletes out of every file, back to the default', async () => {
    const files = new MemoryFiles(
      { ...file('[cluster]\nq = 8\n', 'default.ini'), shipped: true }, file('[cluster]\nq = 2\n'),
      file('[cluster]\nq = 3\n', 'local.d/z.ini'),
    )
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.delete('cluster', 'q', { persist: true })
    expect(configuration.get('cluster', 'q')).to.equal('8')
    expect(files.contents.map(content => content.text)).to.deep.equal([
      '[cluster]\nq = 8\n', '[cluster]\n', '[cluster]\n',
    ])
  })

  it('refuses values that the next start would refuse or a file cannot hold', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    for (const [key, value] of [['q', '0'], ['note', 'a\nb'], ['note', 'a ;b']] as const) {
      expect(await refusal(configuration.set('cluster', key, value, { persist: true }))).to.be.instanceOf(ApiError)
    }
  })

  it('gives typed options that follow the settings before listeners are called', async () => {
    const files = new MemoryFiles(file('[cluster]\nq = 2\n[limits]\ncredentials = 5\n'))
    const configuration = await LiveConfiguration.load(files, {})
    const options = configuration.options(httpDeclarations)
    const heard: number[] = []
    configuration.onChange(() => { heard.push(options.shardsPerDatabase) })
    await configuration.set('cluster', 'q', '4', { persist: false })
    await configuration.set('limits', 'credentials', '6', { persist: false })
    await configuration.delete('cluster', 'q', { persist: false })
    await configuration.reload()
    expect(heard).to.deep.equal([4, 4, 8, 2])
    expect(options.credentialsMax).to.equal(5)
    files.contents = [file('[cluster]\nq = many\n')]
    await configuration.reload()
    expect([options.shardsPerDatabase, configuration.get('cluster', 'q')]).to.deep.equal([8, 'many'])
  })

  it('keeps concurrent changes', async () => {
    const files = new MemoryFiles(file(''))
    const configuration = await LiveConfiguration.load(files, {})
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => configuration.set('x', `k${index}`, 'v', { persist: true })),
    )
    expect(parseIni(files.contents[0]!.text).get('x')?.size).to.equal(20)
  })
})

describe('administrators', () => {
  const isHash = (text: string) => text.startsWith('-')
  const hash = async (_name: string, password: string) => `-${password.length}`

  it('lose their plain-text password in every file that has it', async () => {
    const files = new MemoryFiles(file('[admins]\nanna = pa#ss\n'), file('[x]\n', 'local.d/z.ini'))
    const configuration = await LiveConfiguration.load(files, { SECTIONAL_ADMINS__BERT: 'abc' })
    expect(await prepareAdministrators(configuration, isHash, hash)).to.deep.equal(['anna', 'bert'])
    expect(files.contents.map(content => content.text)).to.deep.equal(['[admins]\nanna = -5\n', '[x]\n'])
    expect(configuration.sections().admins).to.deep.equal({ anna: '-5', bert: '-3' })
  })

  it('lose the plain-text password that somebody wrote into a file before a reload, too', async () => {
    const files = new MemoryFiles(file('[admins]\nanna = -5\n'))
    const configuration = await LiveConfiguration.load(files, { SECTIONAL_ADMINS__BERT: 'abc' })
    await prepareAdministrators(configuration, isHash, hash)
    files.contents = [file('[admins]\nanna = longer\n')]
    await configuration.reload()
    expect(files.contents.map(content => content.text)).to.deep.equal(['[admins]\nanna = -6\n'])
    expect(configuration.sections().admins).to.deep.equal({ anna: '-6', bert: '-3' })
  })

  it('cannot all be removed', async () => {
    const files = new MemoryFiles(file('[admins]\nanna = -5\nbert = -6\ncarl = -7\n'))
    const configuration = await LiveConfiguration.load(files, {})
    await prepareAdministrators(configuration, isHash, hash)
    const removals = await Promise.allSettled(['anna', 'bert', 'carl'].map(name =>
      configuration.delete('admins', name, { persist: true })))
    expect(removals.flatMap(outcome => outcome.status === 'rejected' ? [outcome.reason.status] : []))
      .to.deep.equal([403])
    const left = configuration.sections().admins
    expect(Object.keys(left ?? {})).to.have.length(1)
    expect(parseIni(files.contents[0]!.text).get('admins')).to.deep.equal(new Map(Object.entries(left!)))
    files.contents = [file('[cluster]\nq = 3\n')]
    expect(await refusal(configuration.reload())).to.be.instanceOf(ApiError)
    expect([configuration.sections().admins, configuration.get('cluster', 'q')]).to.deep.equal([left, '8'])
  })

  it('must exist', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    expect(await refusal(prepareAdministrators(configuration, isHash, hash))).to.be.instanceOf(ConfigurationError)
  })
})
