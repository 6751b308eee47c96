import { expect } from 'chai'
import { RealClock } from '../../src/clock/clock-real.ts'
import { MemoryCompression } from '../../src/compression/compression-memory.ts'
import { ZlibCompression } from '../../src/compression/compression-zlib.ts'
import { Turns } from '../../src/clock/turns.ts'
import { compressionSuite } from './compression-suite.ts'

compressionSuite('zlib', () => new ZlibCompression(new Turns(new RealClock())))
compressionSuite('memory', () => new MemoryCompression())

describe('compression of small content', () => {
  it('asks for a pause after each piece, so that it does not hold the event loop', async () => {
    let pauses = 0
    const compression = new ZlibCompression({ pause: async () => { pauses++ } })
    async function* content(): AsyncGenerator<Uint8Array> { yield Buffer.alloc(512 * 1024, 'some text ') }
    for await (const chunk of compression.gzip(content(), 8)) expect(chunk.length).to.be.greaterThan(0)
    expect(pauses).to.equal(512 / 8 + 1)
  })
})
