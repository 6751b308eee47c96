import { expect } from 'chai'
import fc from 'fast-check'
import {
  ApiError, checkStructure, jsonDepthMax, parseDocument, parseDocumentInSlices, parseFiniteJsonInSlices, parseJson,
  readBulkDocuments, readValue, smallJsonBytes, type ParsedDocument,
} from '../../src/index.ts'
import { checkJson } from '../../src/json/json-check.ts'

interface Run<Result> { readonly result: Result; readonly slices: number }

function run<Result>(work: Generator<void, Result>): Run<Result> {
  for (let slices = 1; ; slices++) {
    const step = work.next()
    if (step.done === true) return { result: step.value, slices }
  }
}

function readLarge(text: string): ParsedDocument {
  return run(parseDocumentInSlices(Buffer.from(text))).result
}

/** White space that makes the text of a document large without changing the document. */
const padding = ' '.repeat(smallJsonBytes)

/** Parses with `parseJson`; returns undefined for invalid JSON. */
function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

describe('large JSON', () => {
  it('is accepted exactly when JSON.parse accepts it, except for lone surrogates', () => {
    const sound = '{"a":[1,-2.5e+3,0,true,false,null,"\\u00e9\\n\\"\\ud83d\\ude00x"],"b":{"c":[],"d":{}},"é":""}'
    const put = fc.constantFrom(
      ...'{}[],:"\\+-.0eEu', '', ' ', '\t', '\u0001', '01', '1.', '.5', '-', '1e', '\\x', '\\u12', '\\ud800', '\\udc00',
      'nul', 'null', '\u00a0', ',,',
    )
    fc.assert(fc.property(fc.nat(sound.length - 1), put, fc.boolean(), (at, text, replaces) => {
      const input = sound.slice(0, at) + text + sound.slice(replaces ? at + 1 : at)
      const bytes = Buffer.from(input)
      let isJson: boolean
      try {
        isJson = run(checkJson(bytes, 0)).result.end === bytes.length
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        isJson = false
      }
      const value = parsed(input.trimEnd())
      expect(isJson, input).to.equal(input.trimEnd() === input && typeof value === 'object' && value !== null)
    }), { numRuns: 5000 })
  })

  it('is parsed to the values that JSON.parse returns', () => {
    const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', '1', '0', 'a', 'constructor'))
    fc.assert(fc.property(fc.dictionary(name, fc.jsonValue()), fc.constantFrom('', ' '), (members, space) => {
      const text = ` ${JSON.stringify(members, null, space)}\n`
      expect(run(parseFiniteJsonInSlices(Buffer.from(text))).result).to.deep.equal(JSON.parse(text))
    }))
    const odd = '{"b":[1.50,-0,1e2,12345678901234567890,[],{}],"2":"\\u00e9","b":{"__proto__":{"x":1}},"c":null}'
    expect(JSON.stringify(run(parseFiniteJsonInSlices(Buffer.from(odd))).result))
      .to.equal(JSON.stringify(JSON.parse(odd)))
    const digits = '[1.50,12345678901234567890]'
    expect(JSON.stringify(run(readValue(Buffer.from(digits), 0, 'exact')).result.value)).to.equal(digits)
    expect(run(parseFiniteJsonInSlices(Buffer.from(' "x" '))).result).to.equal('x')
    expect(() => run(parseFiniteJsonInSlices(Buffer.from('{} x')))).to.throw(ApiError, 'invalid UTF-8 JSON')
    expect(run(parseFiniteJsonInSlices(Buffer.from(`[${'{},'.repeat(100_000)}0]`))).slices).to.be.greaterThan(3)
  })

  it('has its repeated names in one object detected, across slices and when spelled with escapes', () => {
    const repeated = (text: string): boolean => run(checkJson(Buffer.from(text), 0)).result.repeated
    const many = Array.from({ length: 20_000 }, (_, index) => `"${index}":{"x":0,"y":1}`)
    expect(repeated(`{${many.join()}}`)).to.equal(false)
    expect(repeated(`{${[...many, '"7":0'].join()}}`)).to.equal(true)
    expect(repeated(`{"a":[${many.map(member => `{${member}}`).join()}],"b":0,"\\u0061":1}`)).to.equal(true)
    expect(repeated('{"a":{"a":{"a":[{"a":1},{"a":1}]}}}')).to.equal(false)
    expect(repeated('{"b":1,"c":2,"b":3}')).to.equal(true)
  })

  it('results in the same document when it is read in slices', () => {
    const anyMembers = fc.dictionary(fc.string(), fc.jsonValue())
    fc.assert(fc.property(anyMembers, fc.constantFrom('', ' ', '\n'), (members, space) => {
      const text = JSON.stringify(members, (name, value: unknown) => name.startsWith('_') ? undefined : value, space)
      const special = '"_id":"x","_rev":"2-b","_attachments":{"2":{"stub":true},"1":{"data":""}}'
      const whole = `${text.slice(0, -1)}${text.length > 2 ? ',' : ''}${special}}`
      expect(readLarge(whole + padding)).to.deep.equal(parseDocument(whole))
    }))
  })

  it('is read in short slices whatever it contains', () => {
    const unit = ['{},', '[],', '0, ', '"\\/",', '{"a":0},', '1e5,', `${'['.repeat(900)}${']'.repeat(900)},`]
    for (const each of unit) {
      const text = `{"a":[${each.repeat(Math.ceil(300_000 / each.length))}0]}`
      const { result, slices } = run(parseDocumentInSlices(Buffer.from(text)))
      expect(slices, each).to.be.greaterThan(text.length / (2 * smallJsonBytes))
      expect(result.body.equals(Buffer.from(text.replaceAll(' ', '').replaceAll('\\/', '/'))), each).to.equal(true)
    }
  })

  it('is refused for its depth before it is parsed', () => {
    const opened = `{"a":${'['.repeat(8_000_000)}`
    const reason = `nested deeper than ${jsonDepthMax} levels`
    for (const text of [opened, opened.replaceAll('[', '[ ')]) {
      expect(() => readLarge(text)).to.throw(ApiError, reason)
      expect(() => run(readBulkDocuments(`{"docs":[${text}`))).to.throw(ApiError, reason)
    }
    expect(() =>
      run(checkStructure(Buffer.from('['.repeat(1001)), { valuesMax: 1e6, setting: '' }))).to.throw(ApiError, reason)
  })

  it('keeps the last of repeated members at any size, as JSON.parse does', () => {
    const repeats = '{"_id":"x","a":{"b":[{"c":1.0,"c":2.0},{"\\u0063":1,"d":0,"c":3}],"b2":0},'
      + '"_id":"y","a":{"b":[{"c":1,"d":{"e":1,"e":2.50},"c":3}]},"z":1}'
    const large = repeats.replace('{', `{ "text":"${'x'.repeat(smallJsonBytes)}",`)
    for (const text of [repeats, repeats + padding, large]) {
      const { id, body } = readLarge(text)
      const filler = text.includes('xx') ? `"text":"${'x'.repeat(smallJsonBytes)}",` : ''
      expect(id).to.equal('y')
      expect(body.toString()).to.equal(`{${filler}"a":{"b":[{"d":{"e":2.50},"c":3}]},"z":1}`)
    }
    const { result } = run(readBulkDocuments(`{"docs":[{"n":1,"n":2},{"n":1,${padding}"n":3}]}`))
    expect(result.documents.map(({ body }) => body.toString())).to.deep.equal(['{"n":2}', '{"n":3}'])
  })

  it('has the members that JSON.parse gives where names are repeated at all depths', () => {
    const { object } = fc.letrec<{ object: string; value: string }>(tie => ({
      object: fc.array(fc.tuple(fc.constantFrom('"a"', '"\\u0061"', '"b"', '"1"', '"__proto__"'), tie('value')), {
        maxLength: 5,
      })
        .map(members => `{${members.map(([name, value]) => `${name}: ${value}`).join(' , ')}}`),
      value: fc.oneof(
        { depthSize: 'small' }, fc.constantFrom('1', '"a:{"', '[ ]', 'null'), tie('object'),
        fc.array(tie('value'), { maxLength: 3 }).map(items => `[${items.join()}]`),
      ),
    }))
    fc.assert(fc.property(object, inner => {
      const text = `{"in":${inner}}`
      const expected = JSON.parse(text) as unknown
      for (const { body } of [parseDocument(text), readLarge(text + padding)]) {
        expect(JSON.parse(body.toString()), text).to.deep.equal(expected)
        expect(run(checkJson(body, 0)).result.repeated, text).to.equal(false)
      }
    }))
  })

  it('keeps the repeated names of attachments at any size', () => {
    const text = '{"_attachments":{"old":{}},"a":0,"_attachments":{"b":{"stub":true},"a":{},"b":{}},"a":1}'
    for (const document of [parseDocument(text), readLarge(text + padding)]) {
      expect(document.attachmentNames).to.deep.equal(['b', 'a', 'b'])
      expect(document.attachments).to.deep.equal({ b: {}, a: {} })
      expect(document.body.toString()).to.equal('{"a":1}')
    }
  })

  it('is read in short slices where every member is repeated', () => {
    const nested = `${'{"a":0,"a":'.repeat(900)}0${',"a":1}'.repeat(900)}`
    for (const text of [`{${'"a":0,'.repeat(200_000)}"a":1}`, `{"b":[${`${nested},`.repeat(20)}{"a":0}]}`]) {
      const { result, slices } = run(parseDocumentInSlices(Buffer.from(text)))
      expect(slices).to.be.greaterThan(text.length / smallJsonBytes)
      expect(result.body.equals(Buffer.from(JSON.stringify(JSON.parse(text))))).to.equal(true)
    }
  })

  it('is refused when it is surrounded by anything but the white space of JSON', () => {
    for (const text of [`{}${padding}\u0001`, `\u0001{}${padding}`, `{}${padding}\v`]) {
      expect(() =>
        readLarge(text), JSON.stringify(text.trim())).to.throw(ApiError).with.property('error', 'bad_request')
    }
  })

  it('is refused when it has more values than the limit, not counting the content of strings', () => {
    const count = (text: string): number =>
      run(checkStructure(Buffer.from(text), { valuesMax: 7, setting: 'a/limit' })).result
    expect(count('{"a,:[{":["\\",",2,3]}')).to.equal(6)
    expect(() => count('{"a":[1,2,3,4,5]}'))
      .to.throw(ApiError, 'more than 7 values and names of members, which is a/limit')
      .with.property('status', 413)
  })
})

describe('reading _bulk_docs in slices', () => {
  it('refuses more documents than the limit before it has read them all', () => {
    const reading = readBulkDocuments(`{"docs":[${'{},'.repeat(1_000_000)}{}]}`, {
      documentsMax: 10, setting: 'a/limit',
    })
    let slices = 0
    expect(() => {
      while (reading.next().done !== true) slices++
    }).to.throw(ApiError, 'more than 10 documents, which is a/limit').with.property('status', 413)
    expect(slices).to.equal(10)
  })

  it('reads documents one by one, whatever escapes and names they contain', () => {
    const documents = ['{"docs":"\\u00e9"}', '{"a":{"docs":[1]}}', `{"large":"${'x'.repeat(smallJsonBytes)}"}`]
    const { result, slices } = run(readBulkDocuments(`{"w":2,"do\\u0063s":[${documents.join()}]}`))
    expect(result.documents.map(({ body }) => body.toString())).to.deep.equal([
      '{"docs":"é"}', documents[1], documents[2],
    ])
    expect(result.members).to.deep.equal({ w: 2 })
    expect(slices).to.be.greaterThan(3)
  })
})
