import { expect } from 'chai'
import { ChecksumSeal } from '../../src/world/checksum-seal.ts'

describe('the seal of simulated frames', () => {
  const key = 'ab'.repeat(32)
  const frame = Buffer.from('a frame of some bytes')

  function tags(seal: ChecksumSeal, frames: readonly Uint8Array[]): string[] {
    return frames.map(each => Buffer.from(seal.next(each)).toString('hex'))
  }

  it('is the same at both ends of a link, and 16 bytes long as that of production', () => {
    const sent = tags(new ChecksumSeal(key), [frame, frame, Buffer.alloc(0)])
    expect(tags(new ChecksumSeal(key), [frame, frame, Buffer.alloc(0)])).to.deep.equal(sent)
    expect(sent.map(tag => tag.length)).to.deep.equal([32, 32, 32])
  })

  it('differs when a frame is changed, repeated, left out, or moved to another link', () => {
    const [first, second] = tags(new ChecksumSeal(key), [frame, frame])
    const [changed] = tags(new ChecksumSeal(key), [Buffer.from('a frame of some byteS')])
    const [moved] = tags(new ChecksumSeal('cd'.repeat(32)), [frame])
    expect(new Set([first, second, changed, moved]).size).to.equal(4)
  })
})
