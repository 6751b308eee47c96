import { expect } from 'chai'
import { readOneTimeSecret, tokenAt, type OneTimeSecret } from '../../src/authentication/one-time-passwords.ts'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

/** "12345678901234567890", the key of the examples in RFC 6238. */
const key = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

describe('tokens of one-time passwords', () => {
  it('are those of RFC 6238', () => {
    const text = '1234567890'.repeat(7)
    const secret = (digest: OneTimeSecret['digest'], bytes: number): OneTimeSecret =>
      ({ key: Buffer.from(text.slice(0, bytes)), digest, digits: 8 })
    const examples = [
      [59, '94287082', '46119246', '90693936'], [1111111109, '07081804', '68084774', '25091201'],
      [20000000000, '65353130', '77737706', '47863826'],
    ] as const
    for (const [seconds, ...tokens] of examples) {
      const secrets = [secret('sha1', 20), secret('sha256', 32), secret('sha512', 64)]
      expect(secrets.map(each => tokenAt(each, Math.floor(seconds / 30)))).to.deep.equal(tokens)
    }
  })

  it('have a secret in Base32, with an algorithm and a length', () => {
    expect(readOneTimeSecret({ key })).to.deep.equal(
      { key: Uint8Array.from(Buffer.from('12345678901234567890')), digest: 'sha1', digits: 6 },
    )
    expect(readOneTimeSecret({ key: 'mzxw6===', algorithm: 'sha256', length: 8 })).to.deep.equal(
      { key: Uint8Array.from(Buffer.from('foo')), digest: 'sha256', digits: 8 },
    )
    const wrong = [
      {}, { key: 1 }, { key: '' }, { key: 'A' }, { key: '189' }, { key, algorithm: 'md5' }, { key, length: 1 },
      { key, length: 6.5 }, { key, algorithm: 'constructor' }, 'text', null, [],
    ]
    for (const totp of wrong) expect(readOneTimeSecret(totp), JSON.stringify(totp)).to.equal(null)
  })
})

describe('a user with a second factor', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    node.configuration.put('chttpd_auth', 'iterations', '2')
    await store({ key })
  })
  afterEach(() => node.stop())

  const store = async (totp: unknown): Promise<void> => {
    const path = '/_users/org.couchdb.user:ann'
    const { _rev } = (await node.get(path)).json
    const document = { ...(_rev && { _rev }), name: 'ann', type: 'user', roles: [], password: 'pw', totp }
    expect((await node.put(path, document)).status).to.equal(201)
  }
  const token = (drift = 0): string =>
    tokenAt(readOneTimeSecret({ key })!, Math.floor(node.clock.now() / 30_000) + drift)
  const login = (given?: string, password = 'pw'): Promise<Answer> => node.post(
    '/_session', { name: 'ann', password, ...(given !== undefined && { token: given }) }, { authorization: '' },
  )
  const statuses = async (...tokens: (string | undefined)[]): Promise<number[]> => {
    const found: number[] = []
    for (const given of tokens) found.push((await login(given)).status)
    return found
  }

  it('logs in with password and token, also in a form, and then has a session', async () => {
    const answer = await node.post('/_session', `name=ann&password=pw&token=${token()}`, {
      'authorization': '', 'content-type': 'application/x-www-form-urlencoded',
    })
    expect(answer.json).to.deep.equal({ ok: true, name: 'ann', roles: [] })
    const cookie = answer.headers['set-cookie']!.split(';', 1)[0]!
    expect((await node.get('/_session', { authorization: '', cookie })).json.userCtx.name).to.equal('ann')
  })

  it('needs both', async () => {
    expect(await statuses(undefined, '', '12345', token(5))).to.deep.equal([401, 401, 401, 401])
    expect((await login(token(), 'wrong')).status).to.equal(401)
    expect((await login(token())).json.reason)
      .to.equal('Account is temporarily locked due to multiple authentication failures')
  })

  it('may have a clock that differs by one step of 30 s', async () => {
    expect(await statuses(token(-2), token(2), token(-1), token(1))).to.deep.equal([401, 401, 200, 200])
  })

  it('uses each token once', async () => {
    const first = token()
    expect(await statuses(first, first, token(1))).to.deep.equal([200, 401, 200])
  })

  it('is locked after five wrong tokens, also when many come at the same time', async () => {
    const tokens = [...Array.from({ length: 20 }, (_, index) => String(index).padStart(7, '0')), token()]
    const answers = await Promise.all(tokens.map(given => login(given)))
    expect(answers.filter(({ status }) => status === 401)).to.have.length(5)
    expect(answers.filter(({ status }) => status === 403)).to.have.length(16)
    expect(await statuses(token())).to.deep.equal([403])
  })

  it('is locked for an IPv6 network after five wrong tokens from its addresses', async () => {
    node.configuration.put('chttpd', 'peer_header', 'X-Forwarded-For')
    const loginFrom = async (address: string, given: string): Promise<number> => (await node.post(
      '/_session', { name: 'ann', password: 'pw', token: given }, { 'authorization': '', 'x-forwarded-for': address },
    )).status
    for (let host = 1; host <= 5; host++) expect(await loginFrom(`2001:db8::${host}`, `00000${host}`)).to.equal(401)
    expect(await loginFrom('2001:db8::6', token())).to.equal(403)
    expect(await loginFrom('2001:db8:0:1::1', token())).to.equal(200)
  })

  it('is not logged in by a header with what a login without the token has checked', async () => {
    expect(await statuses('12345')).to.deep.equal([401])
    for (const text of [JSON.stringify(['ann', 'pw']), `login ${JSON.stringify(['ann', 'pw'])}`]) {
      expect((await node.get('/_session', { authorization: text })).json.userCtx.name, text).to.equal(null)
    }
  })

  it('cannot use Basic credentials, nor log in with a secret that cannot be read', async () => {
    expect((await node.get('/_session', { authorization: basic('ann', 'pw') })).status).to.equal(401)
    expect(await statuses(token())).to.deep.equal([200])
    expect((await node.get('/_session', { authorization: basic('ann', 'pw') })).status).to.equal(401)
    await store({ key: 'no base32' })
    expect(await statuses(token(1))).to.deep.equal([401])
  })
})
