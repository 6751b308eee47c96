import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { ApiError } from '@sectional/core'
import { httpDeclarations } from '@sectional/http'
import { MemoryLog } from '@sectional/runtime'
import { defaultCompactionOptions } from '@sectional/shard'
import { expect } from 'chai'
import fc from 'fast-check'
import { prepareAdministrators } from '../src/configuration/administrators.ts'
import { renderDefaultIni, renderOptionTables } from '../src/configuration/default-ini.ts'
import { declaredOptions } from '../src/configuration/declarations.ts'
import { editIni, fitsIni, parseIni } from '../src/configuration/ini-file.ts'
import { LiveConfiguration } from '../src/configuration/live-configuration.ts'
import { nodeOptions } from '../src/configuration/node-options.ts'
import { warnOfUnknownOptions } from '../src/configuration/unknown-options.ts'
import { ConfigurationError, layerSettings, type IniFile } from '../src/configuration/settings.ts'
import { file, MemoryFiles, refusal } from './memory-files.ts'

const secret = 's'.repeat(32)
const tokenKey = Buffer.from(secret).toString('base64')

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
    expect(editIni(text, 'b', 'y', null)).to.equal('[a]\n; why\nx = 1\n')
    expect(editIni(text, 'a', 'x', null)).to.equal('[a]\n; why\n\n[b]\ny = 2\n')
    expect(editIni('[a]\nx = 1\n\n[b]\n\n', 'a', 'x', null)).to.equal('[b]\n')
    expect(editIni(`${text}\n[c]\n`, 'c', 'x', null)).to.equal(`${text}\n[c]\n`)
    expect(editIni('', 'a', 'x', '1')).to.equal('[a]\nx = 1\n')
  })

  it('keep the comment behind a value that is replaced', () => {
    expect(editIni('[a]\nx=1 ; why\n', 'a', 'x', '3')).to.equal('[a]\nx = 3 ; why\n')
    expect(editIni('[a]\nx =;why\n', 'a', 'x', '3')).to.equal('[a]\nx = 3 ;why\n')
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
        const keys = expected.get(section)
        if (value === null) {
          if (keys?.delete(key) && keys.size === 0) expected.delete(section)
        }
        else expected.set(section, (keys ?? new Map()).set(key, value))
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

  it('that are not declared are reported, each with the declared one that was probably meant', async () => {
    const text = '[chttpd]\nportt = 1\nzzzzzz = 1\nport = 1\n[couchdb]\nbind_adress = x\nport = 2\n'
      + '[chttp]\nmax_uri_length = 5\n[admins]\nanna = pw\n[vendor]\nname = x\n'
    const log = new MemoryLog()
    warnOfUnknownOptions(await LiveConfiguration.load(new MemoryFiles(file(text)), {}), log)
    const found = log.lines.map(({ fields }) =>
      [`${String(fields['section'])}/${String(fields['key'])}`, fields['nearest']])
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
    const empty = declaredOptions.filter(option => option.defaultText === null && option.default !== undefined)
    expect(empty).to.have.length.above(20)
    for (const option of empty) expect(option.parse(''), option.name).to.deep.equal(option.default)
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
    expect([isSecret('chttpd_auth', 'timeout'), isSecret('x', 'colour')]).to.deep.equal([false, false])
  })

  it('says how line breaks of keys of tokens are written', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    const key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const refused = await refusal(configuration.set('jwt_keys', 'eddsa:a', key, { persist: true }))
    expect(refused.message).to.include('line break (write \\n in its place)')
    const written = key.replaceAll('\n', '\\n')
    await configuration.set('jwt_keys', 'eddsa:a', written, { persist: true })
    expect(configuration.get('jwt_keys', 'eddsa:a')).to.equal(written)
  })

  it('refuses keys of tokens that cannot be used, without showing them', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    const refused = await refusal(configuration.set('jwt_keys', 'rsa:a', 'c2VjcmV0', { persist: true }))
    expect(refused.message).to.include('jwt_keys/rsa:a').and.not.to.include('c2VjcmV0')
    await configuration.set('jwt_keys', 'hmac:a=b', tokenKey, { persist: true })
    expect(configuration.get('jwt_keys', 'hmac:a=b')).to.equal(tokenKey)
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

  it('leaves options that need a restart as they are at a reload, and names them', async () => {
    const files = new MemoryFiles(file('[node]\nname = a@h\nzone = z1\n[uuids]\nmax_count = 5\n'), file('', 'z.ini'))
    const configuration = await LiveConfiguration.load(files, {})
    const name = (): unknown => [configuration.get('node', 'name'), configuration.sections().node?.name]
    const changed = '[node]\nname = b@h\n[log]\nlevel = warn\n[uuids]\nmax_count = 6\n'
    files.contents = [file(changed), file('', 'z.ini')]
    for (let times = 0; times < 2; times++) {
      expect([...await configuration.reload()].sort()).to.deep.equal(['log/level', 'node/name', 'node/zone'])
      expect([name(), configuration.get('node', 'zone'), configuration.get('uuids', 'max_count')])
        .to.deep.equal([['a@h', 'a@h'], 'z1', '6'])
    }
    await configuration.set('node', 'zone', 'z3', { persist: true })
    await configuration.set('log', 'level', 'error', { persist: false })
    expect([name(), configuration.get('node', 'zone'), configuration.get('log', 'level'), configuration.get('uuids',
      'max_count')]).to.deep.equal([['a@h', 'a@h'], 'z3', 'error', '6'])
    expect(await configuration.reload()).to.deep.equal(['node/name', 'log/level'])
    expect([configuration.get('node', 'zone'), configuration.get('log', 'level')]).to.deep.equal(['z3', 'info'])
    files.contents = [file('[node]\nname = a@h\n'), files.contents[1]!]
    expect(await configuration.reload()).to.deep.equal([])
    expect((await LiveConfiguration.load(files, {})).get('node', 'zone')).to.equal('z3')
  })

  it('removes a value from its own file only, and uses the default until the next reload', async () => {
    const files = new MemoryFiles(
      { ...file('[cluster]\nq = 8\n', 'default.ini'), shipped: true }, file('; mine\n[cluster]\nq = 2\n'),
      file('[cluster]\nq = 3\n', 'local.d/changes.ini'),
    )
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.delete('cluster', 'q', { persist: true })
    expect(configuration.get('cluster', 'q')).to.equal('8')
    expect(files.contents.map(content => content.text)).to.deep.equal([
      '[cluster]\nq = 8\n', '; mine\n[cluster]\nq = 2\n', '',
    ])
    await configuration.reload()
    expect(configuration.get('cluster', 'q')).to.equal('2')
  })

  it('does not let a removed administrator or key come back from a file of the operator', async () => {
    const mine = '[admins]\nanna = -1\nbert = -2\n[jwt_keys]\nhmac:a = c2VjcmV0\n'
    const files = new MemoryFiles(file(mine), file('', 'local.d/changes.ini'))
    const configuration = await LiveConfiguration.load(files, {})
    await configuration.delete('admins', 'anna', { persist: true })
    await configuration.delete('jwt_keys', 'hmac:a', { persist: true })
    expect(files.contents[0]!.text).to.equal(mine)
    for (const now of [configuration, await LiveConfiguration.load(files, {})]) {
      expect([now.sections().admins, now.sections().jwt_keys]).to.deep.equal([{ bert: '-2' }, undefined])
    }
  })

  it('refuses a reload of wrong files and names file, line, option, value and limit', async () => {
    const files = new MemoryFiles(file('[cluster]\nq = 2\n'), file('', 'local.d/changes.ini'))
    const configuration = await LiveConfiguration.load(files, { SECTIONAL_CLUSTER__N: '2' })
    const refused = async (...contents: IniFile[]): Promise<string> => {
      files.contents = contents
      const error = await refusal(configuration.reload())
      expect(error).to.include({ status: 400, error: 'bad_request' })
      expect([configuration.get('cluster', 'q'), configuration.get('x', 'y')]).to.deep.equal(['2', undefined])
      return error.message
    }
    expect(await refused(file('[x]\ny = 1\n[cluster]\n; many\nq = 300\n'), file('', 'changes.ini'))).to.equal(
      'Nothing was reloaded. local.ini line 5: [cluster] q = "300": only an integer from 1 to 256 is allowed',
    )
    expect(await refused(file('[cluster]\nq = 3\n'), file('[cluster]\nsecret = hidden-from-all\n', 'z.ini')))
      .to.match(/^Nothing was reloaded\. z\.ini line 2: \[cluster\] secret has 15 characters/)
      .and.not.to.include('hidden')
    expect(await refused(file('[jwt_keys]\nrsa:a = hidden\n')))
      .to.match(/local\.ini line 2: \[jwt_keys\] rsa:a = \*{4}/).and.not.to.include('hidden')
  })

  it('refuses changes of options that name files, and of those that decide who joins the cluster', async () => {
    const files = new MemoryFiles(file(`[cluster]\nsecret = ${secret}\n`))
    const configuration = await LiveConfiguration.load(files, {})
    for (const name of ['couchdb/database_dir', 'cluster/tls_key_file', 'cluster/secret', 'cluster/seedlist',
      'chttpd/config_blacklist']) {
      const [section, key] = name.split('/') as [string, string]
      const options = { persist: false }
      const changes = [configuration.set(section, key, '', options), configuration.delete(section, key, options)]
      for (const change of changes) {
        expect(await refusal(change), name).to.include({ status: 403, error: 'forbidden' })
      }
    }
    const naming = declaredOptions.filter(({ key, help }) => /_(file|dir|directory|program|command)$/.test(key)
      || /\b(PEM|[Ff]older of|path of a file)\b/.test(help))
    expect(naming.length).to.be.at.least(4)
    expect(naming.filter(({ filesOnly }) => !filesOnly).map(({ name }) => name)).to.deep.equal([])
  })

  it('refuses values that the next start would refuse or a file cannot hold', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    for (const [key, value] of [['q', '0'], ['note', 'a\nb'], ['note', 'a ;b']] as const) {
      expect(await refusal(configuration.set('cluster', key, value, { persist: true }))).to.be.instanceOf(ApiError)
    }
  })

  it('refuses so many iterations for passwords that logins would hardly end', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    for (const key of ['iterations', 'min_iterations']) {
      const error = await refusal(configuration.set('chttpd_auth', key, '10000001', { persist: true }))
      expect(String(error), key).to.contain('10000000')
    }
  })

  it('refuses a least number of iterations above the largest one, also from a file', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    await configuration.set('chttpd_auth', 'max_iterations', '4999', { persist: true })
    const error = await refusal(configuration.set('chttpd_auth', 'min_iterations', '5000', { persist: true }))
    expect(error).to.include({ status: 400 })
    expect(error.message).to.contain('min_iterations is 5000, more than max_iterations, which is 4999')
    const text = '[chttpd_auth]\nmin_iterations = 20\nmax_iterations = 10\n'
    expect(String(await refusal((await LiveConfiguration.load(new MemoryFiles(file(text)), {})).check())))
      .to.contain('local.ini line 2: [chttpd_auth] min_iterations is 20')
  })

  it('changes nothing when its file cannot be written, and says so', async () => {
    const files = new MemoryFiles(file('[cluster]\nq = 2\n'))
    const configuration = await LiveConfiguration.load(files, {})
    files.write = async () => { throw Object.assign(new Error('read-only'), { code: 'EROFS' }) }
    const persist = { persist: true }
    const changes = [configuration.set('cluster', 'q', '4', persist), configuration.delete('cluster', 'q', persist)]
    for (const change of changes) {
      const { status, message } = await refusal(change) as ApiError
      expect([status, message]).to.deep.equal(
        [503, 'This node cannot write the file of its settings (EROFS), so nothing was changed.'],
      )
    }
    expect(configuration.get('cluster', 'q')).to.equal('2')
    await configuration.set('cluster', 'q', '4', { persist: false })
    expect(configuration.get('cluster', 'q')).to.equal('4')
  })

  it('restores its file when an error comes after the new text, and says so when it cannot', async () => {
    const before = '[cluster]\nq = 2\n'
    const files = new MemoryFiles(file(before))
    const configuration = await LiveConfiguration.load(files, {})
    const write = files.write.bind(files)
    let failures = 1
    files.write = async changed => {
      await write(changed)
      if (failures-- > 0) throw Object.assign(new Error('not synced'), { code: 'EIO' })
    }
    const change = (): Promise<Error> => refusal(configuration.set('cluster', 'q', '4', { persist: true }))
    expect((await change()).message).to.match(/\(EIO\), so nothing was changed\.$/)
    expect([files.contents[0]!.text, configuration.get('cluster', 'q')]).to.deep.equal([before, '2'])
    failures = 2
    files.contents = [file(before)]
    expect(await change()).to.include({
      status: 503, message: 'This node cannot write the file of its settings (EIO), and may have the change after a '
        + 'restart. Repair or free the disk, and repeat the request.',
    })
    expect(configuration.get('cluster', 'q')).to.equal('2')
  })

  it('keeps sections with the names of members of objects like others', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    for (const section of ['__proto__', 'constructor', 'toString']) {
      await configuration.set(section, 'check', 'x', { persist: true })
      expect(configuration.get(section, 'check')).to.equal('x')
      expect(configuration.isShared(section, 'check')).to.equal(false)
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
    await refusal(configuration.reload())
    expect([options.shardsPerDatabase, configuration.get('cluster', 'q')]).to.deep.equal([2, '2'])
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

  it('lose plain-text passwords that other lines and files override, which keep their comments', async () => {
    const plain = [
      file('[admins]\r\nanna = abc ; old\r\n\r\n[admins]\r\nanna = abcd\r\nbert = abcde\r\ncarl = abcdef\r\n'),
      file('[admins]\nbert = -9\ncarl =\n', 'local.d/z.ini'),
    ]
    const hashed = [
      '[admins]\r\nanna = -3 ; old\r\n\r\n[admins]\r\nanna = -4\r\nbert = -5\r\ncarl = -6\r\n',
      '[admins]\nbert = -9\ncarl =\n',
    ]
    const files = new MemoryFiles(...plain)
    const configuration = await LiveConfiguration.load(files, {})
    await prepareAdministrators(configuration, isHash, hash)
    expect(files.contents.map(content => content.text)).to.deep.equal(hashed)
    files.contents = plain
    await configuration.reload()
    expect(files.contents.map(content => content.text)).to.deep.equal(hashed)
    expect(configuration.sections().admins).to.deep.equal({ anna: '-4', bert: '-9' })
  })

  it('have the same hash in memory and in the file, although each hash has a salt of its own', async () => {
    let salt = 0
    const files = new MemoryFiles(file('[admins]\nanna = abc\n'))
    const configuration = await LiveConfiguration.load(files, {})
    await prepareAdministrators(configuration, isHash, async () => `-${salt++}`)
    expect(files.contents[0]!.text).to.equal(`[admins]\nanna = ${configuration.get('admins', 'anna')}\n`)
    files.contents = [file('[admins]\nanna = abcd\n')]
    await configuration.reload()
    expect(files.contents[0]!.text).to.equal(`[admins]\nanna = ${configuration.get('admins', 'anna')}\n`)
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

  it('cannot all be removed from the files while others are in memory only', async () => {
    const files = new MemoryFiles(file('[admins]\nanna = -5\n'))
    const configuration = await LiveConfiguration.load(files, {})
    await prepareAdministrators(configuration, isHash, hash)
    await configuration.set('admins', 'temp', '-6', { persist: false })
    expect(await refusal(configuration.delete('admins', 'anna', { persist: true }))).to.include({ status: 403 })
    expect(files.contents[0]!.text).to.equal('[admins]\nanna = -5\n')
    await configuration.delete('admins', 'temp', { persist: false })
    await configuration.reload()
    expect(configuration.sections().admins).to.deep.equal({ anna: '-5' })
  })

  describe('cannot be locked out', () => {
    const persist = { persist: true }
    const list = ['chttpd', 'authentication_handlers'] as const
    const open = (text: string): Promise<LiveConfiguration> => LiveConfiguration.load(
      new MemoryFiles(file(text), file('', 'changes.ini')), {})
    /** Expects that a change is refused with 400 and a reason that has all these parts. */
    const refused = async (change: Promise<unknown>, ...parts: readonly string[]): Promise<void> => {
      const error = await refusal(change)
      expect(error).to.include({ status: 400 })
      for (const part of parts) expect(error.message).to.contain(part)
    }

    it('by handlers that admit nobody, and may use all that can admit one', async () => {
      const configuration = await open('[admins]\nanna = -hashed-\n')
      for (const options of [persist, { persist: false }]) {
        await refused(configuration.set(...list, 'jwt', options), 'chttpd/authentication_handlers', 'jwt', 'jwt_keys',
          'add cookie or default')
      }
      for (const handlers of ['cookie', 'default', 'jwt, cookie', 'proxy', 'proxy, jwt']) {
        await configuration.set(...list, handlers, persist)
      }
      await refused(configuration.set('chttpd_auth', 'proxy_use_secret', 'true', persist), 'set chttpd_auth/secret')
      await configuration.set('chttpd_auth', 'secret', 'known to the proxy', persist)
      await configuration.set('chttpd_auth', 'proxy_use_secret', 'true', persist)
      await refused(configuration.delete('chttpd_auth', 'secret', persist), 'chttpd_auth/secret: no administrator')
      await configuration.delete(...list, persist)
      await configuration.delete('chttpd_auth', 'secret', persist)
    })

    it('by the removal of the last key of tokens', async () => {
      const configuration = await open('[admins]\nanna = -hashed-\n')
      await configuration.set('jwt_keys', 'hmac:a', tokenKey, persist)
      await configuration.set('jwt_keys', 'hmac:b', tokenKey, persist)
      await configuration.set(...list, 'jwt', persist)
      await configuration.delete('jwt_keys', 'hmac:a', persist)
      await refused(configuration.delete('jwt_keys', 'hmac:b', persist), 'jwt_keys/hmac:b', 'There is no key')
      await refused(configuration.set('jwt_auth', 'algorithms', 'ES256', persist), 'jwt_auth/algorithms')
      await configuration.set('jwt_auth', 'issuer', 'https://id.example', persist)
      await configuration.delete('jwt_keys', 'hmac:b', persist)
      await refused(configuration.delete('jwt_auth', 'issuer', persist), 'jwt_auth/issuer')
      await configuration.set(...list, 'default', persist)
      await configuration.delete('jwt_auth', 'issuer', persist)
    })

    it('by handlers that are kept while their key is in memory only', async () => {
      const configuration = await open('[admins]\nanna = -hashed-\n')
      await configuration.set('jwt_keys', 'hmac:a', tokenKey, { persist: false })
      await refused(configuration.set(...list, 'jwt', persist), 'There is no key')
      await configuration.set(...list, 'jwt', { persist: false })
      await configuration.set('uuids', 'max_count', '5', persist)
      await configuration.set('jwt_keys', 'hmac:a', tokenKey, persist)
      await configuration.set(...list, 'jwt', persist)
    })

    it('by a reload of files, but files count at the start', async () => {
      const files = new MemoryFiles(file('[admins]\nanna = -hashed-\n'))
      const configuration = await LiveConfiguration.load(files, {})
      files.contents = [file('[admins]\nanna = -hashed-\n[chttpd]\nauthentication_handlers = jwt\n')]
      await refused(configuration.reload(), 'Nothing was reloaded', 'no administrator')
      expect(configuration.get(...list)).not.to.equal('jwt')
      const started = await LiveConfiguration.load(files, {})
      await started.check()
      await started.set('uuids', 'max_count', '5', persist)
      await started.reload()
      await started.set(...list, 'cookie', persist)
    })
  })

  it('must exist', async () => {
    const configuration = await LiveConfiguration.load(new MemoryFiles(file('')), {})
    expect(await refusal(prepareAdministrators(configuration, isHash, hash))).to.be.instanceOf(ConfigurationError)
  })
})
