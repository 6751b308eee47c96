import { expect } from 'chai'
import {
  ApiError, parseBulkDocuments, parseDocument, parseExactly, parseFiniteJson, parseFiniteJsonInSlices, parseJson,
} from '../../src/index.ts'

/**
 * Counts the texts. Each text begins with a member whose name no other text has, so that V8 knows only one name that
 * can follow this member.
 */
let texts = 0
function inObject(nameJson: string, readBefore: string): string {
  const first = `n${++texts}`
  parseJson(`{"${first}":0,${readBefore}:[]}`)
  return `{"${first}":0,${nameJson}:[]}`
}

describe('names of members with escapes', () => {
  const cases = [
    ['"\\n"', '"\\\\"'], ['"\\u00e9ab"', '"\\\\u0"'], ['"a\\""', '"a\\\\"'], ['"\\u00e9abcdef"', '"\\\\u00e9a"'],
  ] as const

  for (const [nameJson, readBefore] of cases) {
    it(`are read correctly: ${nameJson} after a text with ${readBefore}`, () => {
      const name = JSON.parse(nameJson) as string
      for (const parse of [parseJson, parseExactly]) {
        const text = inObject(nameJson, readBefore)
        expect(Object.keys(parse(text) as object)).to.include(name)
      }
      const inside = inObject(nameJson, readBefore)
      expect(parseJson(`{"a":[[${inside}]]}`)).to.have.nested.property('a[0][0]').which.has.property(name)
    })
  }

  it('name the attachments that the client named', () => {
    const attachment = '{"data":""}'
    const text = (name: string): string => `{"_attachments":{"a":${attachment},"${name}":${attachment}}}`
    parseDocument(text('\\\\u00e9.tx'))
    const ofBulk = parseBulkDocuments(`{"docs":[${text('\\u00e9.txt')}]}`).documents[0]!
    for (const document of [parseDocument(text('\\u00e9.txt')), ofBulk]) {
      expect(Object.keys(document.attachments!)).to.deep.equal(['a', 'é.txt'])
    }
  })

  it('keep the digits of the numbers beside them', () => {
    const text = inObject('"\\n"', '"\\\\"').replace('[]', '1.0')
    expect(JSON.stringify(parseExactly(text))).to.equal(text)
  })
})

describe('numbers that a double does not hold', () => {
  it('are rounded, and refused beyond the range of doubles', () => {
    const parses = [parseFiniteJson, (text: string): unknown => {
      const reading = parseFiniteJsonInSlices(Buffer.from(text))
      for (let step = reading.next(); ; step = reading.next()) if (step.done === true) return step.value
    }]
    for (const parse of parses) {
      expect(parse('[12345678901234567890,1e308,-1e-400]')).to.deep.equal([12345678901234567000, 1e308, -0])
      const beyond = ['1e400', '-1e999', '[1,[1e400]]', '{"a":{"b":-1e309}}', '9'.repeat(400)]
      for (const text of beyond) expect(() => parse(text), text).to.throw(ApiError, 'invalid UTF-8 JSON')
    }
  })
})
