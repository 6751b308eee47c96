import { ApiError, parseDocument } from '@sectional/core'
import { expect } from 'chai'
import { attachmentEntries, type AttachmentEntry } from '../../src/attachments/attachment-entries.ts'

interface Decoded { readonly bytes: Uint8Array; readonly slices: number }

function decode(data: string): Decoded {
  const reading = attachmentEntries(parseDocument(JSON.stringify({ _attachments: { a: { data } } })))
  for (let slices = 0; ; slices++) {
    const step = reading.next()
    if (step.done === true) {
      return { bytes: (step.value[0] as AttachmentEntry & { readonly kind: 'inline' }).data, slices }
    }
  }
}

describe('content of attachments in the JSON of a document', () => {
  const content = Buffer.from(Array.from({ length: 800_000 }, (_, index) => index * 31))
  const text = content.toString('base64')

  it('is decoded in slices, with line breaks at any place', () => {
    for (const width of [text.length, 76, 4, 3]) {
      const { bytes, slices } = decode(text.replace(new RegExp(`.{${width}}`, 'g'), '$&\r\n'))
      expect(Buffer.compare(bytes, content), `lines of ${width}`).to.equal(0)
      expect(slices).to.be.above(3)
    }
  })

  it('is refused where it is no Base64, in whichever slice', () => {
    for (const broken of [
      `${text}=`, `${text}AA==`, `${text.slice(0, -4)}A===`, `${text.slice(0, 1000)}==${text.slice(1002)}`,
      `${text.slice(0, -1)}`, `${text}\n-AAA`, '====',
    ]) {
      expect(() => decode(broken), broken.slice(-8)).to.throw(ApiError, 'Invalid attachment data for a')
    }
    expect(decode('').bytes).to.have.length(0)
    expect(decode(' \n').bytes).to.have.length(0)
  })
})
