import { ManualClock } from '@sectional/runtime'
import { expect } from 'chai'
import { BlobLeases, leaseMs } from '../../src/blobs/blob-leases.ts'

describe('leases of blobs', () => {
  let clock: ManualClock
  let leases: BlobLeases
  beforeEach(() => {
    clock = new ManualClock()
    leases = new BlobLeases(clock)
  })

  const isRemoved = async (hash: string): Promise<boolean> =>
    await leases.remove(hash, () => Promise.resolve(true)) === true

  for (const kind of ['grant', 'hold'] as const) {
    it(`prevent a removal from the same turn on (${kind})`, async () => {
      const kept = leases[kind]('x')
      expect(await isRemoved('x')).to.equal(false)
      await kept
      expect(await isRemoved('x')).to.equal(false)
    })

    it(`wait for the end of a running removal (${kind})`, async () => {
      let end = (): void => {}
      const removal = leases.remove('x', () => new Promise<void>(resolve => { end = resolve }))
      let isKept = false
      const kept = leases[kind]('x').then(() => { isKept = true })
      await Promise.resolve()
      expect(isKept).to.equal(false)
      end()
      await Promise.all([removal, kept])
      expect(await isRemoved('x')).to.equal(false)
    })
  }

  it('prevent a removal until every holder has released them', async () => {
    await Promise.all([leases.hold('x'), leases.hold('x'), leases.hold('y')])
    leases.release('x')
    expect(await isRemoved('x')).to.equal(false)
    leases.release('x')
    expect(await isRemoved('x')).to.equal(true)
    expect(await isRemoved('y')).to.equal(false)
  })

  it('end after their time, and later when they are renewed', async () => {
    await leases.grant('x')
    await leases.grant('y')
    await clock.advance(leaseMs - 1)
    await leases.grant('x')
    expect(await isRemoved('y')).to.equal(false)
    await clock.advance(1)
    expect(await isRemoved('y')).to.equal(true)
    expect(await isRemoved('x')).to.equal(false)
    await clock.advance(leaseMs - 1)
    expect(await isRemoved('x')).to.equal(true)
  })
})
