import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'
import { ecPairs, edwardsPair, otherRsaPair, pemOf, rsaPair, secret, signToken, type KeyPair } from './token-signer.ts'

const issuer = 'https://id.example/tenant'
const discovery = `${issuer}/.well-known/openid-configuration`
const keySetUrl = 'https://id.example/keys'
const claims = { sub: 'anna', exp: 4_102_444_800, iss: issuer }
const anna = { name: 'anna', roles: [] }
const minute = 60_000

describe('keys of tokens that are fetched from their issuer', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode()
    node.configuration.put('chttpd', 'authentication_handlers', 'cookie, jwt, default')
    node.configuration.put('jwt_auth', 'jwks_url', keySetUrl)
  })
  afterEach(() => node.stop())

  const web = () => node.runtime.httpClient
  const jwk = ({ publicKey }: KeyPair, kid?: string, more: object = {}): object =>
    ({ ...publicKey.export({ format: 'jwk' }), ...(kid !== undefined && { kid }), ...more })
  const serve = (url: string, value: unknown, status = 200): void => {
    web().servers.set(url, () => ({ status, body: typeof value === 'string' ? value : JSON.stringify(value) }))
  }
  const publish = (...keys: object[]): void => serve(keySetUrl, { keys })
  const token = (kid: string | undefined, { privateKey }: KeyPair, alg = 'RS256', more: object = {}): string =>
    signToken({ alg, kid }, { ...claims, ...more }, privateKey)
  const userOf = async (bearer: string): Promise<unknown> => {
    const { status, json } = await node.get('/_session', { authorization: `Bearer ${bearer}` })
    return status === 200 ? json.userCtx : `${status} ${json.reason}`
  }
  const unavailable = '503 The keys of tokens cannot be fetched from their issuer.'
  const warnings = (): string[] => node.log.lines.filter(({ level }) => level === 'warn')
    .map(({ fields }) => String(fields['error']))

  it('verify tokens of each kind, and are fetched once', async () => {
    publish(jwk(rsaPair, 'r'), jwk(ecPairs['ES256']!, 'e'), jwk(edwardsPair, 'd'), { kty: 'future', kid: 'f' })
    const users = await Promise.all([
      userOf(token('r', rsaPair)), userOf(token('e', ecPairs['ES256']!, 'ES256')),
      userOf(token('d', edwardsPair, 'EdDSA')),
    ])
    expect(users).to.deep.equal([anna, anna, anna])
    expect(await userOf(token('r', otherRsaPair))).to.equal('400 Bad signature')
    expect(web().requests).to.deep.equal([keySetUrl])
  })

  it('are used only for their algorithm and for signatures', async () => {
    publish(
      jwk(rsaPair, 'a', { alg: 'RS512' }), jwk(rsaPair, 'b', { use: 'enc' }),
      jwk(rsaPair, 'c', { key_ops: ['encrypt'] }),
    )
    expect(await userOf(token('a', rsaPair, 'RS512'))).to.deep.equal(anna)
    for (const kid of ['a', 'b', 'c']) expect(await userOf(token(kid, rsaPair)), kid).to.equal('400 Unknown kid')
    expect(await userOf(token('a', ecPairs['ES256']!, 'ES256'))).to.equal('400 Unknown kid')
  })

  it('are never secrets of an HMAC', async () => {
    publish({ kty: 'oct', kid: 'h', k: secret.toString('base64url') }, jwk(rsaPair, 'r'))
    expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, claims, secret))).to.equal('400 Unknown kid')
    const pem = Buffer.from(rsaPair.publicKey.export({ type: 'spki', format: 'pem' }).toString())
    expect(await userOf(signToken({ alg: 'HS256', kid: 'r' }, claims, pem))).to.equal('400 Unknown kid')
  })

  it('need no id when only one suits', async () => {
    publish(jwk(rsaPair))
    expect(await userOf(token(undefined, rsaPair))).to.deep.equal(anna)
    publish(jwk(rsaPair, 'a'), jwk(otherRsaPair, 'b'))
    await node.clock.advance(11 * minute)
    await userOf(token(undefined, rsaPair))
    expect(await userOf(token(undefined, rsaPair))).to.equal('400 Unknown kid')
  })

  it('come after those of the configuration', async () => {
    node.configuration.put('jwt_keys', 'rsa:r', pemOf(otherRsaPair))
    publish(jwk(rsaPair, 'r'))
    expect(await userOf(token('r', otherRsaPair))).to.deep.equal(anna)
    expect(await userOf(token('r', rsaPair))).to.equal('400 Bad signature')
    expect(web().requests).to.deep.equal([])
  })

  it('need exp, and check nbf, whatever claims are required', async () => {
    publish(jwk(rsaPair, 'r'))
    node.configuration.put('jwt_auth', 'required_claims', '')
    expect(await userOf(token('r', rsaPair, 'RS256', { exp: undefined }))).to.equal('400 Missing exp claim')
    expect(await userOf(token('r', rsaPair, 'RS256', { exp: 1 }))).to.equal('401 exp not in future')
    expect(await userOf(token('r', rsaPair, 'RS256', { nbf: claims.exp }))).to.equal('401 nbf not in past')
  })

  describe('when the issuer replaces them', () => {
    it('are fetched again for an unknown key id, at most every 30 seconds', async () => {
      publish(jwk(rsaPair, 'old'))
      expect(await userOf(token('old', rsaPair))).to.deep.equal(anna)
      publish(jwk(otherRsaPair, 'new'))
      for (let count = 0; count < 50; count++) {
        expect(await userOf(token(`${count}`, rsaPair))).to.equal('400 Unknown kid')
      }
      expect(web().requests.length).to.equal(1)
      await node.clock.advance(30_000)
      expect(await userOf(token('new', otherRsaPair))).to.deep.equal(anna)
      expect(web().requests.length).to.equal(2)
    })

    it('are not valid any more, also for tokens that were verified before', async () => {
      publish(jwk(rsaPair, 'old'))
      const old = token('old', rsaPair)
      expect(await userOf(old)).to.deep.equal(anna)
      publish(jwk(otherRsaPair, 'new'))
      await node.clock.advance(31_000)
      expect(await userOf(old), 'in memory').to.deep.equal(anna)
      expect(await userOf(token('new', otherRsaPair))).to.deep.equal(anna)
      expect(await userOf(old)).to.equal('400 Unknown kid')
    })

    it('are fetched again after ten minutes, and no request waits for it', async () => {
      publish(jwk(rsaPair, 'r'))
      const bearer = token('r', rsaPair)
      expect(await userOf(bearer)).to.deep.equal(anna)
      web().servers.set(keySetUrl, () => undefined)
      await node.clock.advance(11 * minute)
      expect(await userOf(bearer)).to.deep.equal(anna)
      publish(jwk(otherRsaPair, 'r'))
      await node.clock.advance(minute)
      await userOf(bearer)
      expect(await userOf(bearer)).to.equal('400 Bad signature')
    })

    it('are not used unseen after twenty minutes', async () => {
      publish(jwk(rsaPair, 'r'))
      const bearer = token('r', rsaPair)
      expect(await userOf(bearer)).to.deep.equal(anna)
      publish(jwk(otherRsaPair, 'r'))
      await node.clock.advance(21 * minute)
      expect(await userOf(bearer)).to.equal('400 Bad signature')
    })
  })

  describe('when the issuer cannot be reached', () => {
    it('make requests fail with 503 until they are there', async () => {
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
      expect(warnings()).to.deep.equal([`${keySetUrl}: ECONNREFUSED`])
      publish(jwk(rsaPair, 'r'))
      await node.clock.advance(30_000)
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
    })

    it('do not hold up a request for more than five seconds', async () => {
      web().servers.set(keySetUrl, () => undefined)
      const answer = userOf(token('r', rsaPair))
      await node.clock.advance(5_000)
      expect(await answer).to.equal(unavailable)
      expect(web().requests.length).to.equal(1)
    })

    it('hold up a bounded number of requests', async () => {
      publish(jwk(rsaPair, 'r'))
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
      web().servers.set(keySetUrl, () => undefined)
      await node.clock.advance(minute)
      let refused = 0
      const flood = Array.from({ length: 1000 }, async (_, count) => {
        expect(await userOf(token(`${count}`, rsaPair))).to.equal('400 Unknown kid')
        refused++
      })
      await node.clock.advance(1000)
      expect(refused).to.equal(1000 - 256)
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
      await node.clock.advance(4000)
      await Promise.all(flood)
      expect(web().requests.length).to.equal(2)
    })

    it('are used for an hour', async () => {
      publish(jwk(rsaPair, 'r'))
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
      web().servers.clear()
      await node.clock.advance(59 * minute)
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
      await node.clock.advance(2 * minute)
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
    })

    it('do not keep others from logging in', async () => {
      expect((await node.get('/_session')).json.userCtx.name).to.equal('admin')
      node.configuration.put('jwt_keys', 'hmac:h', secret.toString('base64'))
      expect(await userOf(signToken({ alg: 'HS256', kid: 'h' }, claims, secret))).to.deep.equal(anna)
    })
  })

  it('must be a set of public keys of bounded size', async () => {
    const refusals: [unknown, number, string][] = [
      ['not JSON', 200, 'no JSON object'], [[], 200, 'no JSON object'], [{}, 200, 'no key set'],
      [{ keys: {} }, 200, 'no key set'], [{ keys: [] }, 200, 'no public keys'],
      [{ keys: [null, 'x', { kty: 'oct', k: 'AAAA' }] }, 200, 'no public keys'],
      [{ keys: [{ ...rsaPair.privateKey.export({ format: 'jwk' }), kid: 'r' }] }, 200, 'no public keys'],
      [{ keys: Array.from({ length: 101 }, () => jwk(rsaPair, 'r')) }, 200, 'more than 100 keys'],
      [{ keys: [jwk(rsaPair, 'r')], more: 'x'.repeat(300_000) }, 200, 'more than 262144 bytes'],
      [{ keys: [jwk(rsaPair, 'r')] }, 302, 'status 302'], [{ keys: [jwk(rsaPair, 'r')] }, 500, 'status 500'],
    ]
    for (const [value, status, warning] of refusals) {
      serve(keySetUrl, value, status)
      await node.clock.advance(30_000)
      expect(await userOf(token('r', rsaPair)), warning).to.equal(unavailable)
      expect(warnings().at(-1)).to.include(warning)
    }
  })

  describe('by discovery', () => {
    beforeEach(() => {
      node.configuration.put('jwt_auth', 'jwks_url', '')
      node.configuration.put('jwt_auth', 'issuer', issuer)
    })

    it('are those of the issuer', async () => {
      serve(discovery, { issuer, jwks_uri: keySetUrl })
      publish(jwk(rsaPair, 'r'))
      expect(await userOf(token('r', rsaPair))).to.deep.equal(anna)
      expect(web().requests).to.deep.equal([discovery, keySetUrl])
      const ofAnother = token('r', rsaPair, 'RS256', { iss: 'https://id.example' })
      expect(await userOf(ofAnother)).to.equal('400 Invalid iss claim')
    })

    it('are not taken from another issuer or another host', async () => {
      publish(jwk(rsaPair, 'r'))
      serve('https://evil.example/keys', { keys: [jwk(rsaPair, 'r')] })
      for (const configuration of [
        { issuer: `${issuer}/`, jwks_uri: keySetUrl }, { jwks_uri: keySetUrl }, { issuer },
        { issuer, jwks_uri: 'https://evil.example/keys' }, { issuer, jwks_uri: 'http://id.example/keys' },
        { issuer, jwks_uri: 'https://id.example:8443/keys' }, { issuer, jwks_uri: 'https://id.example@evil.example/k' },
        { issuer, jwks_uri: 'file:///etc/passwd' }, { issuer, jwks_uri: ['https://id.example/keys'] },
        { issuer, jwks_uri: '/keys' },
      ]) {
        serve(discovery, configuration)
        await node.clock.advance(30_000)
        expect(await userOf(token('r', rsaPair)), JSON.stringify(configuration)).to.equal(unavailable)
      }
      expect(web().requests.filter(url => url !== discovery)).to.deep.equal([])
    })

    it('are not logged with the user name and the password of their URL', async () => {
      serve(discovery, { issuer, jwks_uri: 'https://anna:hunter2@id.example/keys' })
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
      expect(warnings().at(-1)).to.match(/^https:\/\/\*{4}@id.example\/keys: /).and.not.to.include('hunter2')
    })

    it('belong to the issuer that is configured now', async () => {
      serve(discovery, { issuer, jwks_uri: keySetUrl })
      publish(jwk(rsaPair, 'r'))
      const bearer = token('r', rsaPair)
      expect(await userOf(bearer)).to.deep.equal(anna)
      node.configuration.put('jwt_auth', 'issuer', 'https://other.example')
      serve('https://other.example/.well-known/openid-configuration', {
        issuer: 'https://other.example', jwks_uri: 'https://other.example/keys',
      })
      serve('https://other.example/keys', { keys: [jwk(otherRsaPair, 'r')] })
      expect(await userOf(bearer)).to.equal('400 Bad signature')
      expect(await userOf(token('r', otherRsaPair, 'RS256', { iss: 'https://other.example' }))).to.deep.equal(anna)
    })

    it('that arrive after the issuer was changed are not used', async () => {
      publish(jwk(rsaPair, 'r'))
      web().servers.set(discovery, () => {
        node.configuration.put('jwt_auth', 'issuer', 'https://other.example')
        return { status: 200, body: JSON.stringify({ issuer, jwks_uri: keySetUrl }) }
      })
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
      expect(await userOf(token('r', rsaPair))).to.equal(unavailable)
    })
  })
})
