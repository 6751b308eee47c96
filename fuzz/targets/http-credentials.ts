/** Credentials and uploads that are changed versions of valid ones, sent to a complete node. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import type { FuzzedNode, FuzzRequest } from '../fuzzed-node.ts'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { administrator } from '../generators/odd-headers.ts'
import { oddValue } from '../generators/odd-json.ts'
import { changed, oddHeader, oddText } from '../generators/odd-text.ts'
import { checkAnswer, withNode } from './http-requests.ts'

const secret = Buffer.from('a secret of thirty-two characters')
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function signed(header: unknown, claims: unknown): string {
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

const claims = { 'sub': 'anna', 'exp': 4_102_444_800, '_couchdb.roles': ['staff'], '_service.roles': ['staff'] }
const token = signed({ alg: 'HS256', kid: 'k', typ: 'JWT' }, claims)
/** Tokens with a valid signature and other contents: what an issuer may get wrong. */
const issued = fc.tuple(
  fc.constantFrom('sub', 'exp', 'nbf', 'iss', 'aud', '_service.roles', '__proto__'), oddValue,
).map(([name, value]) => `Bearer ${signed({ alg: 'HS256', kid: 'k' }, Object.fromEntries([
  ...Object.entries(claims), [name, value],
]))}`)

type Attempt =
  | { readonly kind: 'cookie'; readonly change: (value: string) => string }
  | { readonly kind: 'authorization'; readonly value: string; readonly isIssued: boolean }
  | { readonly kind: 'proxy'; readonly name: string; readonly roles: string; readonly token: string }

const cookieChange = fc.tuple(fc.nat(200), fc.string({ unit: fc.constantFrom(...'abcABC019-_=";'), maxLength: 3 }),
  fc.nat(3))
  .map(([at, added, removed]) => (value: string): string => {
    const place = at % (value.length + 1)
    return value.slice(0, place) + added + value.slice(place + removed)
  })
const attempt: fc.Arbitrary<Attempt> = fc.oneof(
  cookieChange.map(change => ({ kind: 'cookie' as const, change })),
  changed(fc.constant(`Bearer ${token}`)).map(value => ({ kind: 'authorization' as const, value, isIssued: false })),
  issued.map(value => ({ kind: 'authorization' as const, value, isIssued: true })),
  changed(fc.constant(administrator)).map(value => ({ kind: 'authorization' as const, value, isIssued: false })),
  fc.tuple(oddHeader, oddHeader, oddHeader)
    .map(([name, roles, proof]) => ({ kind: 'proxy' as const, name, roles, token: proof })),
)

async function prepared(node: FuzzedNode): Promise<string> {
  const set = (key: string, value: string): Promise<void> => node.prepare('PUT', `/_node/_local/_config/${key}`, value)
  await set('jwt_keys/hmac:k', secret.toString('base64'))
  await set('chttpd_auth/secret', 'the secret of the proxy')
  await set('chttpd_auth/proxy_use_secret', 'true')
  await set('chttpd/authentication_handlers', 'proxy, cookie, jwt, default')
  const { headers } = await node.send({
    method: 'POST', target: '/_session', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'admin', password: 'password' }),
  })
  return /AuthSession=([^;]*)/.exec(String(headers['set-cookie']))![1]!
}

function headersOf(given: Attempt, cookie: string): Record<string, string> {
  switch (given.kind) {
    case 'cookie': return { cookie: `AuthSession=${given.change(cookie)}` }
    case 'authorization': return { authorization: given.value.replace(/[^\t\x20-\x7e\x80-\xff]/g, '') }
    case 'proxy': return {
      'x-auth-service-username': given.name, 'x-auth-service-roles': given.roles, 'x-auth-service-token': given.token,
    }
  }
}

/** The users whom these credentials may name: a change must not make somebody else of them. */
const allowed: ReadonlySet<unknown> = new Set([null, 'admin', 'anna'])

const logins = target({
  name: 'http-credentials', runsInTests: 15, inputs: fc.array(attempt, { minLength: 1, maxLength: 20 }),
  property: 'Changed credentials are those of nobody else, and are refused with a reason or ignored.',
  check: attempts => withNode(async node => {
    const cookie = await prepared(node)
    for (const given of attempts) {
      const request = { method: 'GET', target: '/_session', headers: headersOf(given, cookie) }
      const answer = await node.send(request)
      checkAnswer(request, answer)
      if (answer.status !== 200) continue
      const { userCtx } = JSON.parse(answer.text)
      if (given.kind === 'proxy') assert.equal(userCtx.name, null)
      else if (!(given.kind === 'authorization' && given.isIssued)) assert(allowed.has(userCtx.name), answer.text)
    }
  }),
})

interface Upload { readonly body: string; readonly type: string; readonly name: string; readonly range: string }

const related = [
  '--b', 'Content-Type: application/json', '',
  '{"_attachments":{"f":{"follows":true,"length":3,"content_type":"a/b"},"g":{"follows":true,"length":0}}}', '--b',
  'Content-Disposition: attachment; filename="f"', 'Content-Length: 3', '', 'abc', '--b', '', '', '--b--',
].join('\r\n')
const uploads: fc.Arbitrary<Upload> = fc.record({
  body: changed(fc.constant(related)), type: changed(fc.constantFrom('multipart/related; boundary=b', 'text/html',
    'a/b')),
  name: oddText, range: changed(fc.constantFrom('bytes=0-1', 'bytes=-2', 'bytes=1-1,2-2')),
}, { noNullPrototype: true })

const contents = target({
  name: 'http-uploads', runsInTests: 15, inputs: fc.array(uploads, { minLength: 1, maxLength: 5 }),
  property: 'Documents in parts and attachments are stored or refused; stored ones are read, in ranges too.',
  check: all => withNode(async node => {
    for (const { body, type, name, range } of all) {
      const headers = { authorization: administrator, 'content-type': type.replace(/[^\x20-\x7e\x80-\xff]/g, '') }
      const path = `/db/n/${encodeURIComponent(name.toWellFormed())}`
      const requests: readonly FuzzRequest[] = [
        { method: 'PUT', target: '/db/m', headers: { ...headers, 'content-type': 'multipart/related; boundary=b' },
          body },
        { method: 'PUT', target: '/db/m?new_edits=false', headers, body },
        { method: 'PUT', target: path, headers, body },
        { method: 'GET', target: path, headers: { authorization: administrator, range } },
        { method: 'GET', target: '/db/n?attachments=true', headers: { authorization: administrator, accept: '*/*' } },
        { method: 'DELETE', target: path, headers: { authorization: administrator, 'if-match': range } },
      ]
      for (const request of requests) {
        const answer = await node.send(request)
        checkAnswer(request, answer)
      }
    }
  }),
})

export const credentialTargets: readonly FuzzTarget[] = [logins, contents]
