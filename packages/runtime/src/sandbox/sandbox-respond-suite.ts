import assert from 'node:assert/strict'
import { SandboxError, type RespondArguments, type Sandbox, type SandboxFunction } from './sandbox.ts'

const html = 'text/html; charset=utf-8'

/** The tests of `sandboxSuite` for show and list functions. */
export function respondTests(opened: () => Sandbox): void {
  const respond = (source: string, given: Partial<RespondArguments> = {}, modules = '{}') =>
    opened().respond({ ...functionOf(source), modules }, { argumentList: '[null,{}]', ...given })
  /** Returns the response object. */
  const responseOf = async (source: string, given: Partial<RespondArguments> = {}): Promise<unknown> => {
    const outcome = await respond(source, given)
    assert(outcome.kind === 'value', JSON.stringify(outcome))
    return JSON.parse(outcome.json)
  }
  const accepting = (accept: string, query: object = {}): Partial<RespondArguments> =>
    ({ argumentList: JSON.stringify([null, { headers: { Accept: accept }, query }]) })

  describe('show and list functions', () => {
    it('return a text or a response object', async () => {
      assert.deepEqual(await responseOf('(doc, req) => `${doc.n} ${req.id}`', { argumentList: '[{"n":1},{"id":"x"}]' }),
        { headers: {}, body: '1 x' })
      assert.deepEqual(await responseOf('() => ({ code: 203, json: { a: 1 }, headers: { "X-A": "1" }, stop: true })'),
        { headers: { 'X-A': '1' }, code: 203, json: { a: 1 }, stop: true })
      assert.deepEqual(await responseOf('() => {}'), { headers: {} })
    })

    it('may return numbers only when they get rows', async () => {
      const json = '["error","render_error","undefined response from show function"]'
      for (const value of ['5', 'true', '() => 5', '[]']) {
        assert.deepEqual(await respond(`() => ${value}`), { kind: 'thrown', json })
      }
      for (const value of ['0', 'false']) assert.deepEqual(await responseOf(`() => ${value}`), { headers: {} })
      assert.deepEqual(await responseOf('() => 5', { rows: [] }), { headers: {}, body: '5' })
    })

    it('send parts of the body, which precede what they return', async () => {
      const source = `() => {
        send('a'); send(1); send({ toString: () => 'b' })
        start({ code: 404, headers: { 'X-A': 'start', 'X-B': 'start' } })
        return { body: 'c', headers: { 'X-B': 'returned' } }
      }`
      assert.deepEqual(await responseOf(source),
        { headers: { 'X-A': 'start', 'X-B': 'returned' }, code: 404, body: 'a1bc' })
    })

    it('start with headers in a show function, and with the members of a response in a list function', async () => {
      const source = `() => {
        start({ 'X-A': 'start', 'X-B': 'start' })
        send('a')
        return { body: 'b', headers: { 'X-B': 'returned', 'X-C': 'returned' } }
      }`
      assert.deepEqual(await responseOf(source),
        { headers: { 'X-A': 'start', 'X-B': 'start', 'X-C': 'returned' }, body: 'ab' })
      assert.deepEqual(await responseOf(source, { rows: [] }),
        { headers: { 'X-B': 'returned', 'X-C': 'returned' }, 'X-A': 'start', 'X-B': 'start', body: 'ab' })
    })

    it('send the parts of what they provide after what they return', async () => {
      const source = `() => {
        provides('text', () => { send('4'); return '5' })
        send('1'); send('2')
        return '3'
      }`
      const bodyOf = async (options: Partial<RespondArguments>): Promise<string | undefined> =>
        (await responseOf(source, options) as { readonly body?: string }).body
      assert.equal(await bodyOf({}), '12345')
      assert.equal(await bodyOf({ rows: [] }), '1245', 'what a list function returns then is not sent')
    })

    it('get the rows one after another, and then null', async () => {
      const rows = ['{"key":"\\n\u2028"}', '[2]']
      assert.deepEqual(await responseOf('() => JSON.stringify([getRow(), getRow(), getRow(), getRow()])', { rows }),
        { headers: {}, body: '[{"key":"\\n\u2028"},[2],null,null]' })
      assert.deepEqual(await responseOf('() => String(getRow())'), { headers: {}, body: 'null' })
    })

    it('fail when they read rows that they were not given, even if they catch the error', async () => {
      const given = { rows: ['1'], rowsLeft: '["error","too_many","rows"]' }
      const thrown = { kind: 'thrown', json: given.rowsLeft }
      assert.deepEqual(await respond('() => { while (getRow()); }', given), thrown)
      assert.deepEqual(await respond('() => { try { while (getRow()); } catch {} return "cut" }', given), thrown)
      assert.deepEqual(await responseOf('() => String(getRow())', given), { headers: {}, body: '1' })
    })

    it('may call start until a part was sent and a further row is read', async () => {
      const rows = ['1', '2']
      const codeOf = async (source: string) => (await responseOf(source, { rows }) as { readonly code?: number }).code
      assert.equal(await codeOf('() => { getRow(); start({ code: 201 }); send("x") }'), 201)
      assert.equal(await codeOf('() => { send("x"); start({ code: 201 }) }'), 201)
      assert.equal(await codeOf('() => { start({ code: 201 }); send("x"); getRow(); start({ code: 202 }) }'), 201)
    })

    it('begin each call anew', async () => {
      const source = `(doc, req) => {
        if (doc === null) return
        registerType('own', 'text/own'); provides('own', () => 'own'); start({ code: 500 }); send('sent'); throw 'x'
      }`
      assert.deepEqual(await respond(source, { argumentList: '[1,{}]' }), { kind: 'thrown', json: '"x"' })
      assert.deepEqual(await responseOf(source), { headers: {} })
      assert.equal((await respond('() => { provides("own", () => 1) }')).kind, 'thrown')
    })

    it('find modules and themselves in the whole design document', async () => {
      const modules = JSON.stringify({ a: { b: 'exports.c = 5' }, name: 'design' })
      const source = 'function () { return this.name + require("a/b").c }'
      assert.deepEqual(await respond(source, {}, modules), { kind: 'value', json: '{"headers":{},"body":"design5"}' })
      const called = { ...functionOf(source), modules }
      assert.deepEqual(await opened().call(called, ['[]']), [{ kind: 'value', json: '"design5"' }])
    })

    it('report errors like other functions', async () => {
      assert.deepEqual(await respond('() => {\n  missing.member\n}'), {
        kind: 'error', message: 'ReferenceError: missing is not defined', line: 2, column: 3, module: null,
      })
      assert.equal((await respond('async () => "x"')).kind, 'error')
      assert.equal((await respond('() => { provides("html", async () => "x") }')).kind, 'error')
      const error = await respond('(').then(() => assert.fail('no error'), (thrown: unknown) => thrown)
      assert(error instanceof SandboxError && error.code === 'compilation')
    })

    it('are refused when their response is too long, even if they catch the error', async () => {
      for (const source of [
        '() => { for (;;) send("x".repeat(1e6)) }',
        '() => { try { for (;;) send("x".repeat(1e6)) } catch {} return "cut" }',
        '() => "x".repeat(17 * 1024 * 1024)',
        '() => ({ json: "x".repeat(17 * 1024 * 1024) })',
      ]) {
        const error = await respond(source).then(() => assert.fail('no error'), (thrown: unknown) => thrown)
        assert(error instanceof SandboxError && error.code === 'too_large', String(error))
      }
    })

    it('have globals that other functions may call without effect, except for getRow', async () => {
      const calls = `registerType('own', 'a/b'); provides('own', () => 'x'); start({ code: 404 }); send('x')`
      assert.deepEqual(await opened().call(functionOf(`() => { ${calls}; return 1 }`), ['[]']),
        [{ kind: 'value', json: '1' }])
      assert.deepEqual(await responseOf('() => "y"'), { headers: {}, body: 'y' })
      const [called] = await opened().call(functionOf('function f() {\ngetRow() }'), ['[]'])
      assert(called?.kind === 'error' && called.message === "Error: 'getRow' is only for list functions.")
    })
  })

  describe('provides', () => {
    const source = `(doc, req) => {
      registerType('own', 'application/own', 'text/x-own')
      provides('html', () => '<p>'); provides('json', () => ({ body: '{}', code: 201 })); provides('own', () => 'own')
    }`
    const choices: readonly (readonly [name: string, accept: string, mediaType: string])[] = [
      ['the named type', 'application/json', 'application/json'],
      ['the first type for any', '*/*', html],
      ['a type by its further names', 'text/x-own', 'text/x-own'],
      ['a type by its main type', 'text/*', html],
      ['the type of the highest quality', 'text/html;q=0.2, application/json;q=0.9', 'application/json'],
      ['a more precise type before others of equal quality', '*/*, application/own', 'application/own'],
      ['no type of quality 0', 'text/html;q=0, */*;q=0.1', 'application/json'],
      ['types with parameters', 'TEXT/HTML; level=1; q=0.5', html],
    ]
    for (const [name, accept, mediaType] of choices) {
      it(`chooses ${name}`, async () => {
        const { headers } = await responseOf(source, accepting(accept)) as { readonly headers: object }
        assert.deepEqual(headers, { 'Content-Type': mediaType })
      })
    }

    it('chooses the first format without an Accept header, and that of the query before others', async () => {
      assert.deepEqual(await responseOf(source), { headers: { 'Content-Type': html }, body: '<p>' })
      assert.deepEqual(await responseOf(source, accepting('text/html', { format: 'json' })),
        { headers: { 'Content-Type': 'application/json' }, body: '{}', code: 201 })
      assert.deepEqual(await responseOf(source, accepting('', { format: '' })),
        { headers: { 'Content-Type': html }, body: '<p>' })
    })

    it('throws not_acceptable when no format fits', async () => {
      const given = [
        accepting('image/png'), accepting('text/html', { format: 'csv' }),
        accepting('text/html', { format: '__proto__' }),
      ]
      for (const each of given) {
        const outcome = await respond(source, each)
        assert(outcome.kind === 'thrown' && outcome.json.startsWith('["error","not_acceptable","Content-Type '))
      }
    })

    it('leaves a content type as it was set, and the rows to the chosen function', async () => {
      const list = `() => {
        start({ headers: { 'Content-Type': 'text/mine' } })
        provides('html', () => { let row; send('<'); while (row = getRow()) send(row); return '>' })
      }`
      assert.deepEqual(await responseOf(list, { rows: ['1', '2'] }),
        { headers: { 'Content-Type': 'text/mine' }, body: '<12>' })
    })

    it('knows the formats of CouchDB', async () => {
      const known: Readonly<Record<string, string>> = {
        all: '*/*', text: 'text/plain; charset=utf-8', html, xhtml: 'application/xhtml+xml', xml: 'application/xml',
        js: 'text/javascript', css: 'text/css', ics: 'text/calendar', csv: 'text/csv', rss: 'application/rss+xml',
        atom: 'application/atom+xml', yaml: 'application/x-yaml', multipart_form: 'multipart/form-data',
        url_encoded_form: 'application/x-www-form-urlencoded', json: 'application/json',
      }
      for (const [format, mediaType] of Object.entries(known)) {
        const response = await responseOf(`() => { provides(${JSON.stringify(format)}, () => '') }`)
        assert.deepEqual(response, { headers: { 'Content-Type': mediaType } })
      }
    })
  })
}

function functionOf(source: string): SandboxFunction {
  return { database: 'db', designDocument: '_design/d', modules: '{}', source }
}
