import { expect } from 'chai'
import { RequestHeads } from '../../src/http/request-heads.ts'
import type { RequestHead } from '../../src/http/request-heads.ts'

const kib = 1024

/** A request of one connection, whose line and headers have this many bytes. */
function request(bytes: number, socket: object = {}): RequestHead {
  return { url: '/path', rawHeaders: ['Large', 'x'.repeat(bytes - 10)], socket }
}

describe('RequestHeads', () => {
  it('refuses requests of a connection that waits with more bytes than it may, until others were answered', () => {
    const heads = new RequestHeads()
    const socket = {}
    const answered = Array.from({ length: 4 }, () => heads.begin(request(64 * kib, socket), true))
    expect(answered).not.to.include(null)
    expect(heads.begin(request(20, socket), true)).to.equal(null)
    expect(heads.begin(request(20), true)).not.to.equal(null)
    answered[0]!()
    expect(heads.begin(request(64 * kib, socket), true)).not.to.equal(null)
    expect(heads.begin(request(20, socket), true)).to.equal(null)
  })

  it('refuses large requests of any connection beyond the limit of all, and no small ones', () => {
    const heads = new RequestHeads()
    const answered = Array.from({ length: 1024 }, () => heads.begin(request(64 * kib), false))
    expect(answered).not.to.include(null)
    expect(heads.begin(request(64 * kib), false)).to.equal(null)
    expect(heads.begin(request(20), true)).to.equal(null)
    expect(heads.begin(request(4 * kib), false)).not.to.equal(null)
    answered[0]!()
    expect(heads.begin(request(64 * kib), false)).not.to.equal(null)
  })
})
