import { expect } from 'chai'
import fc from 'fast-check'
import { extendTrail, followTrail, thinTrail, trailPointsMax, type TrailPoint } from '@sectional/core'

const start: TrailPoint = { theirs: 0, own: 0 }
const steps = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 50 })), { maxLength: 1500, size: 'max' },
)

function walk(of: readonly (readonly [number, number])[]): TrailPoint[] {
  let at = start
  return of.map(([theirs, own]) => at = { theirs: at.theirs + theirs, own: at.own + own })
}

describe('trails of sequences', () => {
  it('lead to the last point that the reader has passed', () => {
    const trail = extendTrail([], start, [{ theirs: 5, own: 3 }, { theirs: 9, own: 10 }])
    expect([0, 4, 5, 8, 9, 100].map(sequence => followTrail(trail, sequence))).to.deep.equal([0, 0, 3, 3, 10, 10])
  })

  it('have points that increase, also when a later row has a lower sequence at the peer', () => {
    const trail = extendTrail(extendTrail([], start, [{ theirs: 20, own: 3 }]), { theirs: 20, own: 3 }, [
      { theirs: 7, own: 4 }, { theirs: 30, own: 5 },
    ])
    expect(trail).to.deep.equal([{ theirs: 20, own: 4 }, { theirs: 30, own: 5 }])
  })

  it('use the base of a pass for the changes that another pass has sent', () => {
    const trail = extendTrail([{ theirs: 5, own: 5 }], { theirs: 80, own: 70 }, [
      { theirs: 60, own: 71 }, { theirs: 90, own: 72 },
    ])
    expect(trail).to.deep.equal([{ theirs: 5, own: 5 }, { theirs: 80, own: 71 }, { theirs: 90, own: 72 }])
  })

  it('stay short, never lead further than all points together, and lead back only by a part of the rest', () => {
    fc.assert(fc.property(steps, fc.integer({ min: 1, max: 400 }), (of, passRows) => {
      const all = walk(of)
      let trail: readonly TrailPoint[] = []
      let base = start
      for (let at = 0; at < all.length; at += passRows) {
        trail = extendTrail(trail, base, all.slice(at, at + passRows))
        base = trail.at(-1) ?? start
        expect(trail.length).to.be.at.most(trailPointsMax)
      }
      const end = all.at(-1)?.theirs ?? 0
      for (const { theirs } of all) {
        const own = followTrail(trail, theirs)
        expect(own).to.be.at.most(followTrail(all, theirs))
        const passed = trail.findLast(point => point.theirs <= theirs)?.theirs ?? 0
        expect(theirs - passed).to.be.at.most(Math.max(100, (end - passed) / 4))
      }
    }), { numRuns: 50 })
  })

  it('have gaps of at most an eighth of the rest with a million changes', () => {
    const all = Array.from({ length: 100_000 }, (_, i) => ({ theirs: 10 * i + 10, own: 10 * i + 10 }))
    const trail = thinTrail(all, trailPointsMax)
    expect(trail.length).to.be.within(64, trailPointsMax)
    let before = 0
    for (const { theirs } of trail) {
      expect(theirs - before).to.be.at.most((1_000_000 - before) / 8 + 10)
      before = theirs
    }
  })
})
