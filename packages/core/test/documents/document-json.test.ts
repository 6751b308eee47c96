import { expect } from 'chai'
import fc from 'fast-check'
import {
  ApiError, jsonDepthMax, parseBulkDocuments, parseDocument, parseJson, parseJsonObject,
} from '../../src/index.ts'

function body(text: string): string {
  return parseDocument(text).body.toString()
}

function refused(text: string | Uint8Array, error: string, reason: string): void {
  expect(() => parseDocument(text), String(text).slice(0, 60)).to.throw(ApiError).that.includes({
    status: 400, error, reason,
  })
}

describe('reading a document', () => {
  it('separates the special members from the body, at whatever position they are', () => {
    const document = parseDocument('{"a":1,"_rev":"2-b","x":{"_inner":true},"_id":"doc","_deleted":true,"z":[]}')
    expect(document).to.deep.include({
      id: 'doc', revision: '2-b', path: { start: 2, ids: ['b'] }, deleted: true, attachments: null,
    })
    expect(document.body.toString()).to.equal('{"a":1,"x":{"_inner":true},"z":[]}')
  })

  it('returns null or false for special members that are absent', () => {
    expect(parseDocument('{}')).to.deep.include({
      id: null, revision: null, path: null, deleted: false, attachments: null,
    })
    expect(body(' { } ')).to.equal('{}')
  })

  it('prefers the history of _revisions to _rev', () => {
    const document = parseDocument(
      '{"_rev":"9-z","_revisions":{"start":3,"ids":["c","967A00DFF5E02ADD41819138ABB3284D","a"]}}',
    )
    expect(document.revision).to.equal('3-c')
    expect(document.path).to.deep.equal({ start: 3, ids: ['c', '967a00dff5e02add41819138abb3284d', 'a'] })
    expect(parseDocument('{"_rev":"9-z","_revisions":{"start":0,"ids":[]}}').revision).to.equal('9-z')
  })

  it('ignores the members that the server computes and keeps those of the replicator', () => {
    const text = '{"_revs_info":[],"_local_seq":5,"_conflicts":["1-a"],"_deleted_conflicts":[],'
      + '"_replication_id":"x","_replication_state":"done","_access":[],"a":1,"_deleted":false}'
    expect(body(text)).to.equal('{"_replication_id":"x","_replication_state":"done","_access":[],"a":1}')
  })

  it('returns attachments separately from the body', () => {
    expect(parseDocument('{"_attachments":{"a.txt":{"data":"aGk="}},"n":1.0}')).to.deep.include({
      attachments: { 'a.txt': { data: 'aGk=' } }, body: Buffer.from('{"n":1.0}'),
    })
    expect(parseDocument('{"_attachments":{}}').attachments).to.equal(null)
  })

  it('refuses special members that it does not know or understand', () => {
    for (const name of ['_color', '_Id', '_', '_zing', '__proto__']) {
      refused(`{"fine":1,"${name}":null}`, 'doc_validation', `Bad special document member: ${name}`)
    }
    refused('{"_deleted":"yes"}', 'doc_validation', 'Bad special document member: _deleted')
    refused('{"_deleted":null}', 'doc_validation', 'Bad special document member: _deleted')
    refused('{"_attachments":[]}', 'doc_validation', 'Bad special document member: _attachments')
    refused('{"_revisions":3}', 'doc_validation', 'Bad special document member: _revisions')
    refused('{"_revisions":{"start":"3","ids":[]}}', 'doc_validation', "_revisions.start isn't an integer.")
    refused('{"_revisions":{"start":1.5,"ids":[]}}', 'doc_validation', "_revisions.start isn't an integer.")
    refused('{"_revisions":{"start":3}}', 'doc_validation', "_revisions.ids isn't a array.")
    refused('{"_revisions":{"start":3,"ids":["a",5]}}', 'doc_validation', "RevId isn't a string")
    refused(`{"_revisions":{"start":3,"ids":["${'a'.repeat(1025)}"]}}`, 'bad_request', 'Invalid rev format')
    refused(
      '{"_revisions":{"start":1,"ids":["c","b","a"]}}', 'doc_validation',
      '_revisions.ids has 3 entries, more than generations up to _revisions.start 1',
    )
    for (const revision of ['5', 'null', '"x-abc"', '"7"', '""']) {
      refused(`{"_rev":${revision}}`, 'bad_request', 'Invalid rev format')
    }
    for (const id of ['5', 'null', '[]']) refused(`{"_id":${id}}`, 'illegal_docid', 'Document id must be a string')
  })

  it('refuses what is not a JSON object', () => {
    for (const text of ['42', 'null', '"text"', '[]', 'true']) {
      refused(text, 'bad_request', 'Document must be a JSON object')
    }
    for (const text of [
      '', ' ', '{"a":', "{'a':1}", '{"a":1} {"b":2}', '{"a":01}', '{"a":1,}', '\ufeff{}', '{"a":"\n"}',
    ]) {
      refused(text, 'bad_request', 'invalid UTF-8 JSON')
    }
    refused(Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'bad_request', 'invalid UTF-8 JSON')
    refused(
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]), 'bad_request',
      'invalid UTF-8 JSON',
    )
    refused('{"a":1e400}', 'bad_request', 'invalid UTF-8 JSON')
  })

  it('refuses very deep nesting instead of exhausting the stack', () => {
    const reason = `JSON is nested deeper than ${jsonDepthMax} levels; use a flatter structure`
    refused('['.repeat(100_000), 'bad_request', 'invalid UTF-8 JSON')
    refused(`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'bad_request', 'Document must be a JSON object')
    expect(() =>
      parseBulkDocuments(`{"docs":[{"a": ${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`)).to.throw(ApiError, reason)
    expect(() => parseJson(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).to.throw(ApiError, reason)
    refused(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'bad_request', reason)
    refused(`${'{"a":'.repeat(jsonDepthMax + 1)}1${'}'.repeat(jsonDepthMax + 1)}`, 'bad_request', reason)
    const deepest = `{"a":${'['.repeat(jsonDepthMax - 1)}1.0${']'.repeat(jsonDepthMax - 1)}}`
    expect(body(deepest)).to.equal(deepest)
    const quoted = JSON.stringify({ a: '['.repeat(5000), b: '\\"{'.repeat(5000) })
    expect(body(quoted)).to.equal(quoted)
  })
})

describe('a document body', () => {
  it('keeps digits as they were written', () => {
    const text = '{"a":9007199254740993,"b":123456789012345678901234567890,'
      + '"c":[1.0,1e3,1.50,-0.0,0.0000001,2E+5],"d":-9223372036854775808,"e":0.1}'
    expect(body(text)).to.equal(text)
    expect(body('{"a":-0,"b":1.0}')).to.equal('{"a":0,"b":1.0}')
    expect(body('{"a":-0}')).to.equal('{"a":0}')
    expect(body('{"l":[0.12345678901234567,1.0]}')).to.equal('{"l":[0.12345678901234567,1.0]}')
  })

  it('keeps members in their order, also when they are named like numbers', () => {
    expect(body('{"b":1,"1":2,"0":{"9":1,"a":2,"3":4}}')).to.equal('{"b":1,"1":2,"0":{"9":1,"a":2,"3":4}}')
    expect(body('{"b":1,"\\u0031":2}')).to.equal('{"b":1,"1":2}')
    expect(body('{"in":{"__proto__":{"a":1}},"constructor":1,"toString":2}')).to.equal(
      '{"in":{"__proto__":{"a":1}},"constructor":1,"toString":2}',
    )
  })

  it('keeps the last of several members with one name, at its position', () => {
    expect(body('{"a":1,"b":2,"a":3}')).to.equal('{"b":2,"a":3}')
    expect(body('{"a":1.0,"b":{"x":1,"x":2},"a":3.0}')).to.equal('{"b":{"x":2},"a":3.0}')
    expect(parseDocument('{"_id":"a","n":1.0,"_id":"b"}').id).to.equal('b')
  })

  it('has no white space and no needless escapes', () => {
    expect(body('{ "a" : [ 1 ,\t2 ] ,\r\n "esc\\u0020" : "\\u00e9\\/\\ud83d\\ude00\\n" }')).to.equal(
      '{"a":[1,2],"esc ":"é/😀\\n"}',
    )
    expect(body('{ "a" : [ 1.0 ,\t2 ] ,\r\n "esc\\u0020" : "\\u00e9\\/\\ud83d\\ude00\\n" , "o" : { } }')).to.equal(
      '{"a":[1.0,2],"esc ":"é/😀\\n","o":{}}',
    )
  })

  it('writes long strings in canonical form, wherever they contain an escape', () => {
    const piece = fc.constantFrom('x'.repeat(40), 'é', '"', '\\', '/', '\n', '\u0001', '"}')
    const escaped = (text: string): string => text.replaceAll('/', '\\/').replaceAll('é', '\\u00e9')
    fc.assert(fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, odd) => {
      const canonical = JSON.stringify({ a: pieces.join(''), b: 1 })
      expect(body(odd ? escaped(canonical) : canonical)).to.equal(canonical)
    }), { numRuns: 500 })
  })

  it('refuses lone surrogates, and accepts surrogate pairs', () => {
    for (const text of [
      '\\ud800', 'x\\uD800y', '\\udc00', '\\ud800\\u0041', '\\ud800\\ud800\\udc00', '\\udc00\\ud800', '\\\\\\ud83d',
    ]) {
      refused(`{"a":"${text}"}`, 'bad_request', 'invalid UTF-8 JSON')
      refused(`{"${text}":1}`, 'bad_request', 'invalid UTF-8 JSON')
      expect(() => parseBulkDocuments(`{"docs":[{"a":"${text}"}]}`), text).to.throw(ApiError, 'invalid UTF-8 JSON')
    }
    refused('{"a":"\\ud800","b":"\\udc00"}', 'bad_request', 'invalid UTF-8 JSON')
    expect(body('{"a":"\\ud83d\\ude00","b":"\\\\ud83d"}')).to.equal('{"a":"😀","b":"\\\\ud83d"}')
  })

  it('equals the text of JSON.stringify when JavaScript values are exact', () => {
    const members = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue())
    fc.assert(fc.property(members, fc.constantFrom('', ' ', '\t'), (value, space) => {
      const plain = Object.fromEntries(Object.entries(value).filter(([name]) => !name.startsWith('_')))
      expect(body(JSON.stringify(plain, null, space))).to.equal(JSON.stringify(plain))
    }), { numRuns: 300 })
  })

  it('is the text without the special members, at whatever position they are', () => {
    const member = fc.constantFrom(
      '"a":1', '"b":{"_rev":2,"_x":[]}', '"c":"\\"_id\\":,"', '"1":1.0', '"_id":"x"', '"_rev":"1-a"',
      '"_conflicts":[{"_x":1}]', '"_replication_id":""',
    )
    fc.assert(fc.property(fc.uniqueArray(member), fc.constantFrom('', ' ', '\r\n'), (members, space) => {
      const kept = members.filter(text => !/^"_(id|rev|conflicts)"/.test(text))
      expect(body(`{${space}${members.join(`,${space}`)}${space}}`)).to.equal(`{${kept.join()}}`)
    }), { numRuns: 300 })
  })

  it('keeps every number token, whatever its shape and neighbours', () => {
    const digits = fc.array(fc.nat(9), { minLength: 1, maxLength: 22 })
      .map(list => list.join('').replace(/^0+(?=\d)/, ''))
    const number = fc.tuple(fc.boolean(), digits, fc.option(digits), fc.option(
      fc.tuple(fc.constantFrom('e', 'E', 'e+', 'E-'), fc.nat(20)),
    ))
      .map(([negative, whole, fraction, exponent]) => [
        negative ? '-' : '', whole, fraction === null ? '' : `.${fraction}`, ...exponent ?? [],
      ].join(''))
    const list = fc.array(number, { minLength: 1, maxLength: 6 })
    fc.assert(fc.property(list, fc.constantFrom('', ' ', '\n'), (numbers, space) => {
      const kept = numbers.map(token => token === '-0' ? '0' : token)
      expect(body(`{"n":[${numbers.join(`,${space}`)}],"m":${numbers[0]}${space}}`)).to.equal(
        `{"n":[${kept.join()}],"m":${kept[0]}}`,
      )
    }), { numRuns: 1000 })
  })
})

describe('reading the body of _bulk_docs', () => {
  it('reads each document from its own bytes', () => {
    const bulk = parseBulkDocuments('{"w":2,"docs":[{"_id":"a","v":1},{"_id":"b","v":1.0,"2":0},'
      + '{ "v" : "1.0 , [" },{"v":{"docs":[1.0]}}],"new_edits":false}')
    expect(bulk.newEdits).to.equal(false)
    expect(bulk.members.w).to.equal(2)
    expect(bulk.documents.map(document => document.id)).to.deep.equal(['a', 'b', null, null])
    expect(bulk.documents.map(document => document.body.toString())).to.deep.equal([
      '{"v":1}', '{"v":1.0,"2":0}', '{"v":"1.0 , ["}', '{"v":{"docs":[1.0]}}',
    ])
  })

  it('uses the last of several members named docs', () => {
    expect(parseBulkDocuments('{"docs":[{"v":1.0}],"docs":[{"v":2.0}]}').documents.map(document =>
      document.body.toString())).to.deep.equal(['{"v":2.0}'])
    for (const first of ['1', '[1]', '[{"v":1.0,"w":[]}]', '{}']) {
      expect(parseBulkDocuments(`{"docs":${first},"d\\u006fcs":[{"v":2.0}]}`).documents.map(document =>
        document.body.toString()), first).to.deep.equal(['{"v":2.0}'])
    }
    expect(parseBulkDocuments('{"docs":[]}')).to.deep.include({ documents: [], newEdits: true })
  })

  it('refuses a request of the wrong shape as a whole', () => {
    const cases: readonly (readonly [text: string, reason: string])[] = [
      ['{"documents":[]}', 'POST body must include `docs` parameter.'],
      ['{"docs":{"_id":"a"}}', '`docs` parameter must be an array.'],
      ['{"docs":"a"}', '`docs` parameter must be an array.'],
      ['{"docs":[1,2]}', 'Document must be a JSON object'],
      ['{"docs":[{"_id":"ok"},null]}', 'Document must be a JSON object'],
      ['{"docs":[{"v":1.0},null]}', 'Document must be a JSON object'],
      ['{"docs":[],"new_edits":"no"}', '`new_edits` parameter must be a boolean.'],
      ['[{"_id":"a"}]', 'Request body must be a JSON object'],
      ['{"docs":[{"_id":"a"}', 'invalid UTF-8 JSON'],
      ['', 'invalid UTF-8 JSON'],
    ]
    for (const [text, reason] of cases) {
      expect(() => parseBulkDocuments(text), text).to.throw(ApiError).that.includes({
        status: 400, error: 'bad_request', reason,
      })
    }
    expect(() => parseBulkDocuments('{"docs":[{"_id":"fine"},{"_what":1}]}')).to.throw(
      ApiError, 'Bad special document member: _what',
    )
  })

  it('reads each document as if it were parsed alone', () => {
    const text = fc.constantFrom(
      '{"a":1}', '{"a":1.0}', '{"_id":"x","b":{"1":2,"a":[]}}', '{"s":"\\"docs\\":[1.0]\\\\"}',
      '{ "n" : 12345678901234567890 }', '{}',
    )
    fc.assert(fc.property(fc.array(text), fc.constantFrom('', ' ', '\n\t'), (texts, space) => {
      const bulk = parseBulkDocuments(
        `{${space}"docs"${space}:${space}[${space}${texts.join(`${space},${space}`)}${space}]${space}}`,
      )
      expect(bulk.documents).to.deep.equal(texts.map(parseDocument))
    }))
  })
})

describe('a body of _bulk_docs that is no JSON', () => {
  const filler = 'x'.repeat(100)
  const first = `{"_id":"a","t":"${filler}","n":[1,{"m":true}]}`
  const second = `{"_rev":"1-a","s":"\\n${filler}\\""}`
  const sound = `{"w":1,"docs":[${first},\n ${second},{}],"new_edits":true}`

  it('is refused when it is truncated at any position', () => {
    expect(parseBulkDocuments(sound).documents).to.have.length(3)
    for (let length = 0; length < sound.length; length++) {
      expect(() => parseBulkDocuments(sound.slice(0, length)), String(length)).to.throw(ApiError, 'invalid UTF-8 JSON')
    }
  })

  it('is refused after a byte was replaced, removed or inserted exactly when JSON.parse refuses it', () => {
    const place = fc.nat(sound.length - 1)
    const put = fc.constantFrom(
      ...'{}[],:"\\', '', ' ', '\u0001', '.5', '-', 'docs', ',,', '"docs"', '"docs":[{"a":1}],',
    )
    fc.assert(fc.property(place, put, fc.boolean(), (at, text, replaces) => {
      const bulk = sound.slice(0, at) + text + sound.slice(replaces ? at + 1 : at)
      const value = parsed(bulk)
      const found = outcome(() => parseBulkDocuments(bulk).documents)
      const docs = (value as { docs?: object[] } | undefined)?.docs
      if (value === undefined) expect(found, bulk).to.equal('invalid UTF-8 JSON')
      else if (docs === undefined) expect(found, bulk).to.be.a('string')
      else expect(found, bulk).to.deep.equal(
        outcome(() => docs.map(document => parseDocument(JSON.stringify(document)))),
      )
    }), { numRuns: 3000 })
  })

  function parsed(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  }

  function outcome(work: () => unknown): unknown {
    try {
      return work()
    } catch (error) {
      return error instanceof ApiError ? error.reason : error
    }
  }
})

describe('reading JSON', () => {
  it('returns values and objects', () => {
    expect(parseJson('[1,"a"]')).to.deep.equal([1, 'a'])
    expect(parseJson(Buffer.from('"é"'))).to.equal('é')
    expect(parseJsonObject('{"a":1}')).to.deep.equal({ a: 1 })
    expect(() => parseJsonObject('[]')).to.throw(ApiError, 'Request body must be a JSON object')
    expect(() => parseJson('{')).to.throw(ApiError, 'invalid UTF-8 JSON')
  })
})
