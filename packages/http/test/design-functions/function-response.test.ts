import assert from 'node:assert/strict'
import { readResponse } from '../../src/design-functions/function-response.ts'
import { FunctionError } from '../../src/messages/function-error.ts'

function refusal(value: unknown): string {
  try {
    readResponse(value)
  } catch (error) {
    assert(error instanceof FunctionError)
    assert.deepEqual([error.status, error.error], [500, 'render_error'])
    return error.reason
  }
  return 'accepted'
}

describe('the response object of a function', () => {
  it('has a body as text, as JSON or as Base64', () => {
    assert.deepEqual(readResponse('a').content, { kind: 'text', text: 'a' })
    assert.deepEqual(readResponse({}).content, { kind: 'text', text: '' })
    assert.deepEqual(readResponse({ body: 'a' }).content, { kind: 'text', text: 'a' })
    assert.deepEqual(readResponse({ body: 'a', json: null }).content, { kind: 'json', json: 'null' })
    const bytes = Buffer.from([0, 1, 2, 255])
    assert.deepEqual(readResponse({ base64: 'AAEC/w==' }).content, { kind: 'bytes', bytes })
  })

  it('has a code, headers and stop', () => {
    const { status, headers, stop } = readResponse({ code: 299, headers: { 'x-a': 1, 'ALLOW': true }, stop: true })
    assert.deepEqual([status, headers, stop], [299, { 'X-A': '1', 'Allow': 'true' }, true])
    assert.deepEqual(readResponse({ headers: { 'content-type': 'a/b', 'Content-Type': 'c/d' } }).headers,
      { 'Content-Type': 'c/d' })
  })

  it('may set cookies of its own, and let other origins read it', () => {
    const headers = { 'Set-Cookie': 'a=b', 'Access-Control-Allow-Origin': 'http://a.example' }
    assert.deepEqual(readResponse({ headers }).headers, headers)
  })

  const refused: readonly (readonly [value: unknown, reason: RegExp])[] = [
    [undefined, /must return a text or a response object/], [null, /must return/], [7, /must return/],
    [['x'], /must return/],
    [{ codes: 200 }, /no member "codes"/],
    ...[99, 101, 199, 600, 99_999, -1, 200.5, '200', null, {}, 1e300].map(code => (
      [{ code }, /code of a response is an integer from 200 to 599/] as const
    )),
    [{ body: 1 }, /body of a response is a text, and not 1/], [{ body: {} }, /is a text/],
    [{ base64: 'A' }, /not Base64/], [{ base64: 'AA==AA==' }, /not Base64/], [{ base64: 1 }, /not Base64/],
    [{ stop: 'yes' }, /stop/],
    [{ headers: [] }, /are an object/], [{ headers: null }, /are an object/],
    [{ headers: { 'X-A': 'b\r\nSet-Cookie: c=d' } }, /"b\\r\\nSet-Cookie: c=d" is not a value of the header X-A/],
    [{ headers: { 'X-A': 'b\n' } }, /not a value/], [{ headers: { 'X-A': 'b\0' } }, /not a value/],
    [{ headers: { 'X-A': '\u20ac' } }, /not a value/], [{ headers: { 'X-A': '\u00e9' } }, /not a value/],
    [{ headers: { 'X-A': ['b'] } }, /not a value/],
    [{ headers: { 'X-A': null } }, /not a value/],
    [{ headers: { 'X-A\r\nX-B': 'c' } }, /is not the name of a header/], [{ headers: { '': 'c' } }, /not the name/],
    [{ headers: { 'X A': 'c' } }, /not the name/], [{ headers: { '__proto__ ': 'c' } }, /not the name/],
    ...[
      'Content-Length', 'content-length', 'Transfer-Encoding', 'Connection', 'Keep-Alive', 'Upgrade', 'TE', 'Trailer',
      'Proxy-Connection', 'Proxy-Authenticate', 'NEL', 'report-to', 'Alt-Svc', 'Clear-Site-Data',
      'Strict-Transport-Security', 'Public-Key-Pins', 'Service-Worker-Allowed',
    ].map(name => [{ headers: { [name]: '1' } }, /must not set the header/] as const),
    ...['AuthSession=x', 'AuthSession', ' AuthSession =x; Path=/', '"AuthSession"=x',
      'a=b, AuthSession=x'].map(cookie => (
      [{ headers: { 'set-cookie': cookie } }, /must not set the session cookie/] as const
    )),
    [{ headers: { 'X-A': 'x'.repeat(8190) } }, /have 8193 bytes, the limit is 8192/],
    [{ headers: Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`x${n}`, 'y'])) }, /the limit is 8192/],
  ]

  for (const [value, reason] of refused) {
    const text = JSON.stringify(value) ?? 'undefined'
    it(`must not be ${text.length > 60 ? `${text.slice(0, 60)}...` : text}`, () => {
      assert.match(refusal(value), reason)
    })
  }
})
