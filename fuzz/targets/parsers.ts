/** Parsers of the HTTP layer and of the configuration. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ApiError } from '@sectional/core'
import { boundaryOf, headerParameter, MultipartReader } from '../../packages/http/src/attachments/multipart-reader.ts'
import { byteRanges } from '../../packages/http/src/attachments/byte-ranges.ts'
import { parseBasicCredentials } from '../../packages/http/src/authentication/basic-credentials.ts'
import {
  findSessionCookie, isSignedBy, makeSessionCookie, readSessionCookie,
} from '../../packages/http/src/authentication/session-cookie.ts'
import { documentTag, taggedRevision } from '../../packages/http/src/messages/response.ts'
import { Query } from '../../packages/http/src/request/query.ts'
import { encodeSegment, splitPath, splitTarget } from '../../packages/http/src/request/request-path.ts'
import { bearerToken, readToken } from '../../packages/http/src/tokens/signed-token.ts'
import { editIni, fitsIni, parseIni } from '../../packages/server/src/configuration/ini-file.ts'
import { target, type FuzzTarget } from '../fuzz-target.ts'
import { changed, oddHeader, oddText } from '../generators/odd-text.ts'

const runsInTests = 300
const wellFormed = oddText.map(text => text.toWellFormed())

/** Runs a parser. @throws every error but a refusal of the client */
export function refusesOr<Result>(parse: () => Result): Result | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof ApiError && error.status < 500 && error.reason !== '') return undefined
    throw error
  }
}

const paths = target({
  name: 'paths', runsInTests, inputs: fc.array(wellFormed.filter(text => text !== ''), { maxLength: 5 }),
  property: 'Segments that are written into a path are read again, whatever they contain.',
  check: segments => {
    const path = segments.map(segment => `/${encodeSegment(segment)}`).join('')
    assert.deepEqual(splitPath(path, false), segments)
    assert.deepEqual(splitTarget(`http://host:1${path === '' ? '/' : path}?a=b`), {
      path: path === '' ? '/' : path, search: 'a=b',
    })
    refusesOr(() => splitPath(segments.join('/'), true))
  },
})

const queries = target({
  name: 'query-strings', runsInTests, inputs: fc.tuple(fc.dictionary(wellFormed, wellFormed), oddText),
  property: 'Parameters that are written into a query are read again; other texts give parameters or a refusal.',
  check: ([parameters, text]) => {
    const query = Query.parse(new URLSearchParams(parameters).toString())
    for (const [name, value] of Object.entries(parameters)) assert.equal(query.get(name), value)
    for (const name of refusesOr(() => Query.parse(text))?.names() ?? []) assert.equal(typeof name, 'string')
  },
})

interface Body { readonly parts: readonly Part[]; readonly boundary: string; readonly cuts: readonly number[] }
interface Part { readonly headers: Record<string, string>; readonly content: string }

const token = fc.string({ unit: fc.constantFrom(...'abcXYZ019-_'), minLength: 1, maxLength: 12 })
const parts = fc.record({
  headers: fc.dictionary(token, oddHeader.map(text => text.replace(/[^\x20-\x7e]/g, '').trim()), {
    maxKeys: 3, noNullPrototype: true,
  }),
  content: fc.oneof(oddText, fc.constantFrom('\r\n', '--b', '\r\n--', '\r\n--b\r', '--b--')),
}, { noNullPrototype: true })
const bodies: fc.Arbitrary<Body> = fc.record({
  parts: fc.array(parts, { minLength: 1, maxLength: 4 }), boundary: token,
  cuts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 }),
}, { noNullPrototype: true })

async function* cutInto(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const end = at + cuts[index % cuts.length]!
    yield bytes.subarray(at, end)
    at = end
  }
}

async function readParts(body: Buffer, boundary: string, cuts: readonly number[]): Promise<Part[] | undefined> {
  const reader = new MultipartReader(cutInto(body, cuts), boundary)
  const found: Part[] = []
  try {
    for (let part = await reader.next(); part !== null; part = await reader.next()) {
      const chunks: Uint8Array[] = []
      for await (const chunk of part.body) chunks.push(chunk)
      found.push({ headers: Object.fromEntries(part.headers), content: Buffer.concat(chunks).toString() })
    }
    await reader.finish()
    return found
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return undefined
    throw error
  }
}

const multipart = target({
  name: 'multipart', runsInTests, inputs: fc.tuple(bodies, changed(fc.constant('--b\r\nA: b\r\n\r\nx\r\n--b--'))),
  property: 'The parts of a multipart body are read as they were written, however it is cut; other bodies are refused.',
  check: async ([{ parts: written, boundary, cuts }, text]) => {
    const separate = written.map(({ headers, content }) => ({
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      content: content.toWellFormed().replaceAll(boundary, ''),
    }))
    const lines = separate.map(({ headers, content }) => [
      `--${boundary}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', content, '',
    ].join('\r\n'))
    const body = Buffer.from(`${lines.join('')}--${boundary}--`)
    assert.deepEqual(await readParts(body, boundary, cuts), separate)
    await readParts(Buffer.from(text), 'b', cuts)
    const type = `multipart/related; boundary="${boundary}"`
    assert.equal(boundaryOf(type), boundary)
    boundaryOf(text)
    headerParameter(text, 'filename')
  },
})

const cookies = target({
  name: 'session-cookies', runsInTests,
  inputs: fc.tuple(
    token, fc.nat(2 ** 32), changed(fc.constant('YWRtaW46NjcwMDAwMDA6YWJj')),
    changed(fc.constant('AuthSession=YTpiOmM')),
  ),
  property: 'A cookie that was made is read and verified; a changed one is refused or not verified.',
  check: ([name, time, text, header]) => {
    const value = makeSessionCookie(name, time, 'key', 'sha256')
    const read = readSessionCookie(findSessionCookie(`a=b; AuthSession=${value}; c="d"`)!)
    assert.deepEqual([read.name, read.time, isSignedBy(read, 'key', 'sha256')], [name, time, true])
    assert.equal(isSignedBy(read, 'other key', 'sha256'), false)
    const other = refusesOr(() => readSessionCookie(text))
    if (other !== undefined) assert.equal(isSignedBy(other, 'key', 'sha256'), false)
    findSessionCookie(header)
  },
})

const credentials = target({
  name: 'credentials', runsInTests,
  inputs: fc.tuple(token, wellFormed, changed(fc.constantFrom('Basic YTpi', 'Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA'))),
  property: 'Basic credentials are read as they were written; other Authorization headers are read or refused.',
  check: ([name, password, header]) => {
    const encoded = Buffer.from(`${name}:${password}`).toString('base64')
    const isLoggedOut = name === '_' && password === '_'
    assert.deepEqual(parseBasicCredentials(`Basic ${encoded}`), isLoggedOut ? null : { name, password })
    refusesOr(() => parseBasicCredentials(header))
    const bearer = bearerToken(header)
    if (bearer !== null) refusesOr(() => readToken(bearer, ['HS256']))
  },
})

const ranges = target({
  name: 'ranges', runsInTests,
  inputs: fc.tuple(changed(fc.constantFrom('bytes=0-1', 'bytes=-5', 'bytes=3-', 'bytes=0-1,5-6,-1')), fc.nat(20)),
  property: 'The spans of a Range header lie inside of the content.',
  check: ([header, length]) => {
    for (const { start, end } of refusesOr(() => byteRanges(header, length)) ?? []) {
      assert(Number.isSafeInteger(start) && start >= 0 && start < end && end <= length, `${start}-${end}`)
    }
  },
})

const tags = target({
  name: 'entity-tags', runsInTests, inputs: wellFormed,
  property: 'The ETag of a revision is a valid header, and denotes the revision.',
  check: text => {
    const tag = documentTag(`1-${text}`)
    assert.match(tag, /^"[!#-~]*"$/)
    assert.equal(taggedRevision(tag), `1-${text}`)
    taggedRevision(text)
  },
})

const ini = target({
  name: 'ini-files', runsInTests,
  inputs: fc.tuple(oddText, oddText, oddText, changed(fc.constant('; a\n[s]\nk = v ; c\nl=m\n\n[t]\nk = 1\n'))),
  property: 'A setting that is accepted for a file is read back, and changes no other setting.',
  check: ([section, key, value, text]) => {
    const before = parseIni(text)
    if (!fitsIni(section, key, value)) return
    const after = parseIni(editIni(text, section, key, value))
    assert.equal(after.get(section)?.get(key), value)
    for (const [name, settings] of before) {
      for (const [other, kept] of settings) {
        if (name !== section || other !== key) assert.equal(after.get(name)?.get(other), kept)
      }
    }
    const removed = parseIni(editIni(text, section, key, null))
    assert.equal(removed.get(section)?.get(key), undefined)
  },
})

export const parserTargets: readonly FuzzTarget[] = [
  paths, queries, multipart, cookies, credentials, ranges, tags, ini,
]
