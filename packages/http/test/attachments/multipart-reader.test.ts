import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import fc from 'fast-check'
import { boundaryOf, headerParameter, MultipartReader } from '../../src/attachments/multipart-reader.ts'

describe('multipart reader', () => {
  it('gives the parts of a body with their headers', async () => {
    const body = [
      'preamble',
      '--b', 'Content-Type: application/json', 'X-Long: one', '  two', '', '{}',
      '--b', '', 'no headers', '', '--not',
      '--b  ', 'A: b', '', '',
      '--b--', 'epilogue',
    ].join('\r\n')
    expect(await read([body], 'b')).to.deep.equal([
      { headers: { 'content-type': 'application/json', 'x-long': 'one two' }, body: '{}' },
      { headers: {}, body: 'no headers\r\n\r\n--not' },
      { headers: { a: 'b' }, body: '' },
    ])
  })

  it('skips what was not read of a part, and gives nothing more of it afterwards', async () => {
    const reader = new MultipartReader(stream(['--b\r\n\r\nfirst part\r\n--b\r\n\r\nsecond\r\n--b--']), 'b')
    const first = await reader.next()
    const second = await reader.next()
    expect(await text(first!.body)).to.equal('')
    expect(await text(second!.body)).to.equal('second')
    expect(await reader.next()).to.equal(null)
  })

  for (const [what, body] of [
    ['nothing at all', ''],
    ['no boundary', 'only text'],
    ['no closing boundary', '--b\r\n\r\npart'],
    ['an end behind a boundary', '--b'],
    ['an end in the headers', '--b\r\nContent-Type: x'],
    ['a header without a colon', '--b\r\nrubbish\r\n\r\nx\r\n--b--'],
    ['something behind a boundary', '--b x\r\n\r\nx\r\n--b--'],
    ['headers without an end', `--b\r\nA: ${'x'.repeat(20_000)}\r\n\r\nx\r\n--b--`],
  ] as const) {
    it(`refuses a body with ${what}`, async () => {
      let error: unknown
      await read([body], 'b').catch((thrown: unknown) => { error = thrown })
      expect(error).to.be.instanceOf(ApiError)
      expect((error as ApiError).status).to.equal(400)
    })
  }

  it('reads whatever parts were written, however the body is cut', async () => {
    const part = fc.string({ unit: fc.constantFrom('a', '-', '\r', '\n', '\r\n', '--', '--b', 'é') })
    const parts = fc.array(part, { minLength: 1, maxLength: 5 })
    const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 })
    await fc.assert(fc.asyncProperty(parts, cuts, async (parts, cuts) => {
      const boundary = 'bound'
      const body = Buffer.from(`${parts.map(each => `--${boundary}\r\n\r\n${each}\r\n`).join('')}--${boundary}--`)
      const pieces: Buffer[] = []
      for (let at = 0, index = 0; at < body.length; index++) {
        const size = cuts[index % cuts.length]!
        pieces.push(body.subarray(at, at + size))
        at += size
      }
      expect((await read(pieces, boundary)).map(each => each.body)).to.deep.equal(parts)
    }), { numRuns: 300 })
  })

  it('ends on any bytes with parts or a refusal', async () => {
    const noise = fc.array(fc.constantFrom('--b', '\r\n', '--', 'x', ':', ' ', '\r', '\n', '--b--', 'A: b'))
      .map(words => words.join(''))
    await fc.assert(fc.asyncProperty(noise, async body => {
      try {
        await read([body], 'b')
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    }), { numRuns: 1000 })
  })
})

describe('multipart headers', () => {
  it('name a boundary, quoted or not', () => {
    expect(boundaryOf('multipart/related; boundary=abc')).to.equal('abc')
    expect(boundaryOf('multipart/related;type="x"; boundary="a b\\"c"; x=y')).to.equal('a b"c')
    expect(boundaryOf('multipart/related; charset=utf-8')).to.equal(null)
    expect(boundaryOf(`multipart/related; boundary=${'x'.repeat(71)}`)).to.equal(null)
    expect(boundaryOf('multipart/related; boundary=""')).to.equal(null)
  })

  it('name files', () => {
    expect(headerParameter('attachment; filename="a \\"b\\".txt"', 'filename')).to.equal('a "b".txt')
    expect(headerParameter('form-data; name=_attachments; filename=x', 'name')).to.equal('_attachments')
    expect(headerParameter(undefined, 'name')).to.equal(undefined)
  })
})

async function read(
  chunks: readonly (string | Uint8Array)[], boundary: string,
): Promise<{ headers: Record<string, string>; body: string }[]> {
  const reader = new MultipartReader(stream(chunks), boundary)
  const parts: { headers: Record<string, string>; body: string }[] = []
  for (let part = await reader.next(); part !== null; part = await reader.next()) {
    parts.push({ headers: Object.fromEntries(part.headers), body: await text(part.body) })
  }
  await reader.finish()
  return parts
}

async function* stream(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk as string)
}

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts).toString('utf8')
}
