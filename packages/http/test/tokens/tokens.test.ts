import { generateKeyPairSync, sign } from 'node:crypto'
import { expect } from 'chai'
import { httpDeclarations } from '@sectional/http'
import { MemoryNode, type Answer } from '../memory-node.ts'
import {
  ecPairs, edwardsPair, encode, otherRsaPair, pemOf, rsaPair, secret, signToken, type KeyPair,
} from './token-signer.ts'

const year2100 = 4_102_444_800
const claims = { sub: 'anna', exp: year2100 }

describe('signed tokens', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode()
    node.configuration.put('chttpd', 'authentication_handlers', 'cookie, proxy, jwt, default')
    const keys: Record<string, string> = {
      'hmac:h': secret.toString('base64'), 'rsa:r': pemOf(rsaPair), 'eddsa:e': pemOf(edwardsPair),
      ...Object.fromEntries(Object.entries(ecPairs).map(([name, pair]) => [`ec:${name}`, pemOf(pair)])),
    }
    for (const [name, key] of Object.entries(keys)) node.configuration.put('jwt_keys', name, key)
  })
  afterEach(() => node.stop())

  const send = (token: string, path = '/_session'): Promise<Answer> =>
    node.get(path, { authorization: `Bearer ${token}` })
  const userOf = async (token: string): Promise<unknown> => {
    const { status, json } = await send(token)
    return status === 200 ? json.userCtx : `${status} ${json.reason}`
  }
  const set = (key: string, value: string): void => node.configuration.put('jwt_auth', key, value)
  const hmac = (more: object = {}, header: object = {}): string =>
    signToken({ alg: 'HS256', kid: 'h', ...header }, { ...claims, ...more }, secret)
  const anna = { name: 'anna', roles: [] }

  it('are not accepted unless the handler is listed', async () => {
    node.configuration.put('chttpd', 'authentication_handlers', 'cookie, default')
    expect(await userOf(hmac())).to.deep.equal({ name: null, roles: [] })
  })

  it('are verified with each algorithm', async () => {
    set('algorithms', 'HS256,HS384,HS512,RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA,Ed25519')
    const signed = (alg: string, kid: string, { privateKey }: KeyPair): string =>
      signToken({ alg, kid }, { ...claims, alg }, privateKey)
    for (const alg of ['HS256', 'HS384', 'HS512']) expect(await userOf(hmac({}, { alg })), alg).to.deep.equal(anna)
    for (const alg of ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']) {
      expect(await userOf(signed(alg, 'r', rsaPair)), alg).to.deep.equal(anna)
      expect(await userOf(signed(alg, 'r', otherRsaPair)), alg).to.equal('400 Bad signature')
    }
    for (const [alg, pair] of Object.entries(ecPairs)) {
      expect(await userOf(signed(alg, alg, pair)), alg).to.deep.equal(anna)
    }
    for (const alg of ['EdDSA', 'Ed25519']) expect(await userOf(signed(alg, 'e', edwardsPair)), alg).to.deep.equal(anna)
    expect(await userOf(signed('ES256', 'ES384', ecPairs['ES384']!)), 'a key of another curve').to.match(/^400 Bad/)
  })

  it('are refused with an algorithm that is not allowed', async () => {
    expect(await userOf(signToken({ alg: 'PS256', kid: 'r' }, claims, rsaPair.privateKey)))
      .to.equal('400 Invalid alg header parameter')
    set('algorithms', 'RS256')
    expect(await userOf(hmac())).to.equal('400 Invalid alg header parameter')
  })

  it('are refused without a signature, however `none` is written', async () => {
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '', null, 0, ['HS256'], { HS256: 1 }]) {
      const input = `${encode({ alg, kid: 'h' })}.${encode(claims)}`
      for (const signature of ['', encode('x'), hmac().split('.')[2]!]) {
        expect(await userOf(`${input}.${signature}`)).to.equal('400 Invalid alg header parameter')
      }
    }
    expect(await userOf(hmac().replace(/[^.]*$/, ''))).to.equal('400 Bad HMAC')
  })

  it('are refused when a public key was used as the secret of an HMAC', async () => {
    const pem = rsaPair.publicKey.export({ type: 'spki', format: 'pem' }).toString()
    const forms = [pem, pem.trim(), pemOf(rsaPair), rsaPair.publicKey.export({ type: 'spki', format: 'der' })]
    for (const form of forms) {
      const forged = signToken({ alg: 'HS256', kid: 'r' }, claims, Buffer.from(form))
      expect(await userOf(forged)).to.equal('400 Unknown kid')
      expect(await userOf(forged.replace(/^[^.]*/, encode({ alg: 'RS256', kid: 'r' })))).to.equal('400 Bad signature')
    }
  })

  it('are refused with signatures that any key would seem to have made', async () => {
    const input = `${encode({ alg: 'ES256', kid: 'ES256' })}.${encode(claims)}`
    const der = sign('sha256', Buffer.from(input), ecPairs['ES256']!.privateKey)
    for (const signature of [Buffer.alloc(64), Buffer.alloc(64, 0xff), Buffer.alloc(0), Buffer.alloc(1), der]) {
      expect(await userOf(`${input}.${signature.toString('base64url')}`)).to.equal('400 Bad signature')
    }
    const rsa = `${encode({ alg: 'RS256', kid: 'r' })}.${encode(claims)}`
    for (const signature of [Buffer.alloc(256), Buffer.alloc(256, 0xff), Buffer.from([1])]) {
      expect(await userOf(`${rsa}.${signature.toString('base64url')}`)).to.equal('400 Bad signature')
    }
  })

  it('mean the last of repeated parameters and claims', async () => {
    const repeated = '{"sub":"eve","sub":"anna","exp":1,"exp":4102444800}'
    expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, repeated, secret))).to.deep.equal(anna)
    const none = encode(`{"alg":"HS256","kid":"h","alg":"none"}`)
    expect(await userOf(`${none}.${encode(claims)}.`)).to.equal('400 Invalid alg header parameter')
  })

  it('are not verified with keys that they bring along or point to', async () => {
    const jwk = otherRsaPair.publicKey.export({ format: 'jwk' })
    for (const header of [
      { jwk }, { jku: 'http://127.0.0.1:1/' }, { x5u: 'http://127.0.0.1:1/' }, { x5c: ['AAAA'] }, { jwk, kid: 'new' },
    ]) {
      const forged = signToken({ alg: 'RS256', kid: 'r', ...header }, claims, otherRsaPair.privateKey)
      expect(await userOf(forged)).to.match(/^400 (Bad signature|Unknown kid)$/)
    }
  })

  it('are refused with extensions that must be understood', async () => {
    expect(await userOf(hmac({}, { crit: ['b64'], b64: false }))).to.equal('400 Invalid crit header parameter')
    expect(await userOf(hmac({}, { crit: [] }))).to.equal('400 Invalid crit header parameter')
  })

  it('are looked up by their key id only in the section of keys', async () => {
    node.configuration.put('admins', 'h', 'x')
    for (const kid of [
      '../hmac:h', 'r/../h', 'h\u0000', ' h', 'H', '', '__proto__', 'constructor', 'h\nhmac:h', '/dev/null', 'hmac:h',
      '*', '${h}', 'x'.repeat(10_000),
    ]) expect(await userOf(hmac({}, { kid })), kid).to.equal('400 Unknown kid')
    for (const kid of [null, 1, ['h'], { h: 1 }]) {
      expect(await userOf(hmac({}, { kid }))).to.equal('400 Invalid kid claim')
    }
  })

  it('that are malformed are refused on every path', async () => {
    const [header, payload, signature] = hmac().split('.') as [string, string, string]
    for (const token of [
      'abc', 'a.b', 'a.b.c.d', '..', `${header}.${payload}`, `${header}..${signature}`, `.${payload}.${signature}`,
      `${header}.${payload}.${signature}.`, `${header}.${payload}=.${signature}`, `${header} .${payload}.${signature}`,
      `${header}.${payload}.${signature}, Bearer ${header}.${payload}.${signature}`, `${encode('{"alg"')}.${payload}.`,
      `${encode('\ufeff{}')}x.${payload}.`, `${Buffer.from('{"alg":"\xff"}', 'latin1').toString('base64url')}.e30.`,
      'x'.repeat(20_000), `${encode({ alg: 'HS256', kid: 'h', x: 'x'.repeat(17_000) })}.e30.x`,
    ]) expect(await userOf(token), token.slice(0, 100)).to.equal('400 Malformed token')
    for (const value of [[1], 1, null, 'text']) {
      expect(await userOf(`${encode(JSON.stringify(value))}.e30.`)).to.equal('400 Not an object')
      expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, JSON.stringify(value), secret)))
        .to.equal('400 Not an object')
    }
    for (const path of ['/', '/_up', '/missing', '/_session']) expect((await send('abc', path)).status).to.equal(400)
  })

  it('are read after the scheme in any case, and nothing else is', async () => {
    const nameOf = async (authorization: string): Promise<unknown> =>
      (await node.get('/_session', { authorization })).json.userCtx?.name
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) expect(await nameOf(`${scheme} ${hmac()}`)).to.equal('anna')
    for (const other of ['Bearer', 'Bearer ', `Bearers ${hmac()}`, `Token ${hmac()}`, hmac()]) {
      expect(await nameOf(other), other).to.equal(null)
    }
  })

  it('must not have expired, at any second', async () => {
    const seconds = (): number => Math.floor(node.clock.now() / 1000)
    await node.clock.advance(1000 - node.clock.now() % 1000)
    const exp = seconds() + 5
    const token = hmac({ exp })
    await node.clock.advance(4_999)
    expect(await userOf(token)).to.deep.equal(anna)
    await node.clock.advance(1)
    expect(await userOf(token), 'also a token that is known').to.equal('401 exp not in future')
    set('clock_tolerance', '2')
    expect(await userOf(token)).to.deep.equal(anna)
    await node.clock.advance(1_999)
    expect(await userOf(token)).to.deep.equal(anna)
    await node.clock.advance(1)
    expect(await userOf(token)).to.equal('401 exp not in future')
  })

  it('need times that are numbers', async () => {
    expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, { sub: 'anna' }, secret)))
      .to.equal('400 Missing exp claim')
    for (const exp of ['4102444800', null, [year2100], { a: 1 }, true]) {
      expect(await userOf(hmac({ exp })), String(exp)).to.equal('400 Invalid exp claim')
    }
    const endless = `{"sub":"anna","exp":1e999}`
    expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, endless, secret))).to.equal('400 Invalid exp claim')
    expect(await userOf(hmac({ exp: -1 }))).to.equal('401 exp not in future')
    expect(await userOf(hmac({ exp: year2100 + 0.5 }))).to.deep.equal(anna)
  })

  it('must have begun when nbf is required', async () => {
    const nbf = Math.floor(node.clock.now() / 1000) + 10
    expect(await userOf(hmac({ nbf })), 'not required').to.deep.equal(anna)
    set('required_claims', 'exp, nbf')
    expect(await userOf(hmac())).to.equal('400 Missing nbf claim')
    expect(await userOf(hmac({ nbf }))).to.equal('401 nbf not in past')
    set('clock_tolerance', '10')
    expect(await userOf(hmac({ nbf }))).to.deep.equal(anna)
  })

  it('need the claims and parameters that are required, with their values', async () => {
    set('required_claims', 'iat, typ, kid, {iss, "https://id.example"}, {groups, "a"}, alg')
    const all = { iat: 1, iss: 'https://id.example', groups: ['a', 'b'] }
    const typ = { typ: 'JWT' }
    expect(await userOf(hmac(all, typ))).to.deep.equal(anna)
    expect(await userOf(hmac({ ...all, iat: undefined }, typ))).to.equal('400 Missing iat claim')
    expect(await userOf(hmac({ ...all, iat: 'now' }, typ))).to.equal('400 Invalid iat claim')
    expect(await userOf(hmac(all))).to.equal('400 Missing typ header parameter')
    expect(await userOf(hmac(all, { typ: 'at+jwt' }))).to.equal('400 Invalid typ header parameter')
    expect(await userOf(hmac({ ...all, iss: 'https://evil.example' }, typ))).to.equal('400 Invalid iss claim')
    expect(await userOf(hmac({ ...all, iss: ['https://id.example'] }, typ))).to.equal('400 Invalid iss claim')
    expect(await userOf(hmac({ ...all, iss: undefined }, typ))).to.equal('400 Missing iss claim')
    expect(await userOf(hmac({ ...all, groups: ['b'] }, typ))).to.equal('400 Invalid groups claim')
    expect(await userOf(hmac(all, { ...typ, kid: undefined }))).to.equal('400 Missing kid claim')
  })

  it('are checked in the order of CouchDB: claims before the key and the signature', async () => {
    set('required_claims', 'kid, exp, nbf, iat, {groups, "a"}, {iss, "me"}, typ')
    const given: Record<string, unknown> = { sub: 'anna', groups: 'b' }
    const header: Record<string, unknown> = { alg: 'HS256' }
    const refused = (): Promise<unknown> => userOf(signToken(header, given, Buffer.from('another key')))
    const steps: readonly (readonly [string, object, object?])[] = [
      ['400 Missing typ header parameter', { }, { typ: 'JWT' }], ['400 Missing iss claim', { iss: 'me' }],
      ['400 Missing iat claim', { iat: 1.5 }], ['400 Invalid iat claim', { iat: 1 }],
      ['400 Missing nbf claim', { nbf: year2100 }], ['401 nbf not in past', { nbf: 1 }],
      ['400 Missing exp claim', { exp: 1 }], ['401 exp not in future', { exp: year2100 }],
      ['400 Invalid groups claim', { groups: 'a' }], ['400 Missing kid claim', {}, { kid: 'x' }],
      ['400 Unknown kid', {}, { kid: 'h' }],
    ]
    for (const [reason, ...then] of steps) {
      expect(await refused()).to.equal(reason)
      Object.assign(given, then[0])
      Object.assign(header, then[1])
    }
    expect(await refused()).to.equal('400 Bad HMAC')
    expect(await userOf(`${encode({ alg: 'none' })}.***.x`)).to.equal('400 Invalid alg header parameter')
    expect(await userOf(`${encode({ alg: 'HS256', kid: 'x' })}.${encode('[1]')}.x`)).to.equal('400 Not an object')
  })

  it('are refused with a signature that is not in base64url', async () => {
    for (const end of ['=', '***', '+', '%']) expect(await userOf(hmac() + end), end).to.equal('400 Bad HMAC')
  })

  it('must be of the issuer and for the audience, where these are configured', async () => {
    set('issuer', 'https://id.example')
    set('audience', 'sectional, db')
    const right = { iss: 'https://id.example', aud: ['other', 'db'] }
    expect(await userOf(hmac(right))).to.deep.equal(anna)
    expect(await userOf(hmac({ ...right, aud: 'sectional' }))).to.deep.equal(anna)
    expect(await userOf(hmac({ ...right, iss: 'https://id.example/' }))).to.equal('400 Invalid iss claim')
    expect(await userOf(hmac({ ...right, iss: undefined }))).to.equal('400 Missing iss claim')
    for (const aud of ['other', [], {}, 1, ['sectional, db'], 'sectional,db', [['db']]]) {
      expect(await userOf(hmac({ ...right, aud })), JSON.stringify(aud)).to.equal('400 Invalid aud claim')
    }
    expect(await userOf(hmac({ ...right, aud: undefined }))).to.equal('400 Missing aud claim')
  })

  it('name a user', async () => {
    expect(await userOf(hmac({ sub: undefined }))).to.equal('401 Token missing sub claim.')
    for (const sub of ['', null, 1, ['anna'], { name: 'anna' }]) {
      expect(await userOf(hmac({ sub })), JSON.stringify(sub)).to.equal('400 Invalid sub claim')
    }
    const half = '{"exp":4102444800,"sub":"\\ud800"}'
    expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, half, secret))).to.equal('400 Invalid sub claim')
    for (const sub of ['cäcilie ☃', 'a:b', '_admin', 'with "quotes"\n', '__proto__', 'org.couchdb.user:x']) {
      expect(await userOf(hmac({ sub }))).to.deep.equal({ name: sub, roles: [] })
    }
  })

  it('give the roles of a claim, or of a path with escaped dots', async () => {
    const deep = { 'er.': { roles: ['d'] }, 'list': [{ roles: ['l'] }] }
    const more = { '_service.roles': ['a', 'b', ''], 'plain': ' x ,,y,,', deep }
    const roles = async (): Promise<unknown> => (await userOf(hmac(more)) as { roles: unknown }).roles
    expect(await roles()).to.deep.equal(['a', 'b', ''])
    set('roles_claim_name', 'plain')
    expect(await roles()).to.deep.equal(['x', '', 'y'])
    for (const missing of ['none', 'deep.er', 'toString', '__proto__']) {
      set('roles_claim_name', missing)
      expect(await roles(), missing).to.deep.equal([])
    }
    set('roles_claim_path', 'deep.er\\..roles')
    expect(await roles()).to.deep.equal(['d'])
    for (const missing of [
      'deep.er.roles', 'deep.list.0.roles', 'a.b', 'deep.er\\..roles.length', 'constructor.name',
    ]) {
      set('roles_claim_path', missing)
      expect(await roles(), missing).to.deep.equal([])
    }
  })

  it('give the roles of a text as they are written, apart from blanks of ASCII around them', async () => {
    const roles = '\ufeff_admin,\u00a0_admin,_admin\u2028,\u3000'
    expect(await userOf(hmac({ '_service.roles': `${roles}, \t,\r\nstaff ` })))
      .to.deep.equal({ name: 'anna', roles: [...roles.split(','), '', 'staff'] })
  })

  it('are refused when the roles are no list of texts', async () => {
    for (const roles of [null, 1, true, {}, { 0: '_admin', length: 1 }, [1], [null], ['a', ['_admin']]]) {
      const refused = await userOf(hmac({ '_service.roles': roles }))
      expect(refused, JSON.stringify(roles)).to.equal('400 Malformed token')
    }
    expect(await userOf(hmac({ 'sub': undefined, '_service.roles': [1] }))).to.equal('400 Malformed token')
  })

  it('make a server administrator by the role _admin only', async () => {
    const status = async (roles: unknown, more: object = {}): Promise<number> =>
      (await send(hmac({ '_service.roles': roles, ...more }), '/_all_dbs')).status
    expect(await status(['_admin'])).to.equal(200)
    expect(await status('x, _admin')).to.equal(200)
    for (const roles of [['admin'], [' _admin'], ['_Admin'], []]) expect(await status(roles)).to.equal(401)
    expect(await status([], { sub: 'admin' }), 'the name of an administrator').to.equal(401)
    expect(await status([], { roles: ['_admin'], admin: true })).to.equal(401)
  })

  it('keep the log and error texts free of tokens and keys', async () => {
    const tokens = [hmac(), hmac({ exp: 1 }), hmac({}, { kid: 'x' }), `${hmac()}x`]
    const answers = await Promise.all(tokens.map(token => send(token)))
    const logged = JSON.stringify([node.log, answers.map(({ text }) => text)])
    for (const part of [...tokens.flatMap(token => token.split('.')), secret.toString('base64')]) {
      expect(logged).not.to.include(part)
    }
  })

  describe('in memory', () => {
    it('lose their validity when their key is replaced or removed', async () => {
      const token = hmac()
      const remote = '/_node/_local/_config/jwt_keys/hmac:h'
      expect(await userOf(token)).to.deep.equal(anna)
      await node.put(remote, JSON.stringify(Buffer.from('another secret').toString('base64')))
      expect(await userOf(token)).to.equal('400 Bad HMAC')
      await node.put(remote, JSON.stringify(secret.toString('base64')))
      expect(await userOf(token)).to.deep.equal(anna)
      await node.delete(remote)
      expect(await userOf(token)).to.equal('400 Unknown kid')
    })

    it('lose their validity when the rules change', async () => {
      const token = hmac()
      expect(await userOf(token)).to.deep.equal(anna)
      set('required_claims', 'exp, iss')
      expect(await userOf(token)).to.equal('400 Missing iss claim')
      set('required_claims', 'exp')
      set('algorithms', 'RS256')
      expect(await userOf(token)).to.equal('400 Invalid alg header parameter')
    })
  })
})

describe('keys of tokens', () => {
  const { requiredClaims, tokenIssuer, tokenAlgorithms } = httpDeclarations

  it('are checked by the options', () => {
    expect(requiredClaims.parse('exp,{iss, "a, b"} , kid')).to.deep.equal([
      { name: 'exp', value: undefined }, { name: 'iss', value: 'a, b' }, { name: 'kid', value: undefined },
    ])
    expect(requiredClaims.parse('')).to.deep.equal([])
    for (const wrong of ['{iss}', '{iss, x}', 'a b', '{iss, ""}', '{"iss", "x"}']) {
      expect(() => requiredClaims.parse(wrong), wrong).to.throw('claim')
    }
    expect(() => tokenAlgorithms.parse('HS256, none')).to.throw('none is no algorithm')
    for (const wrong of [
      'id.example', 'http://id.example', 'ftp://id.example', 'https://a:b@id.example', 'https://id.example/#x',
      'http://127.0.0.1.evil.example', 'file:///etc/passwd',
    ]) expect(() => tokenIssuer.parse(wrong), wrong).to.throw('allowed')
    for (const right of [
      '', 'https://id.example/x', 'http://127.0.0.1:7600', 'http://[::1]/x', 'http://localhost:1/',
    ]) expect(tokenIssuer.parse(right)).to.equal(right)
  })

  it('are refused in the wrong family, form and size', async () => {
    const { parseTokenKey } = await import('@sectional/http')
    const pem = (pair: KeyPair): string => pemOf(pair)
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const odd = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
    const privatePem = rsaPair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString().replaceAll('\n', '\\n')
    for (const [name, text] of [
      ['rsa:a', pem(rsaPair)], ['ec:a', pem(ecPairs['ES384']!)], ['eddsa:a', pem(edwardsPair)], ['hmac:a', 'YWJj'],
      ['hmac:a:b=c', 'YWI='], ['rsa:_default', pem(rsaPair).replaceAll('\\n', '\n')],
    ] as const) expect(() => parseTokenKey(name, text), name).not.to.throw()
    for (const [name, text] of [
      ['rsa:a', pem(ecPairs['ES256']!)], ['ec:a', pem(rsaPair)], ['eddsa:a', pem(rsaPair)], ['rsa:a', pem(small)],
      ['ec:a', pem(odd)], ['rsa:a', privatePem], ['hmac:a', ''], ['hmac:a', 'no base64!'], ['hmac:a', pem(rsaPair)],
      ['rsa:a', '-----BEGIN PUBLIC KEY-----\\nAAAA\\n-----END PUBLIC KEY-----'], ['a', 'YWJj'], ['hmac:', 'YWJj'],
      ['none:a', 'YWJj'], ['HMAC:a', 'YWJj'],
    ] as const) expect(() => parseTokenKey(name, text), `${name} ${text.slice(0, 40)}`).to.throw()
  })
})
