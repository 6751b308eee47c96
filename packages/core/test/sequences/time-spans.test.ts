import { expect } from 'chai'
import fc from 'fast-check'
import { sequenceBefore, timeSpanMin, timeSpanMs, timeSpansMax, withChange, type TimeSpan } from '@sectional/core'

describe('times of sequences', () => {
  it('begin a span every three hours, and none for an implausibly early time', () => {
    let spans = withChange([], 5, 1)
    expect(spans).to.deep.equal([])
    const start = Math.ceil(timeSpanMin / timeSpanMs) * timeSpanMs
    for (const [offset, sequence] of [
      [1, 1], [timeSpanMs - 1, 2], [timeSpanMs, 3], [5 * timeSpanMs + 7, 4], [timeSpanMs, 5],
    ] as const) {
      spans = withChange(spans, start + offset, sequence)
    }
    expect(spans.map(({ begin, sequence }) => [(begin - start) / timeSpanMs, sequence])).to.deep.equal([
      [0, 1], [1, 3], [5, 4],
    ])
  })

  it('say nothing about earlier changes after they were cleared', () => {
    const begin = Math.ceil(timeSpanMin / timeSpanMs) * timeSpanMs
    const spans = withChange([], begin + 60_000, 4)
    expect(sequenceBefore(spans, begin + 1000, 4), 'the first three may be as young').to.equal(0)
  })

  it('stay few and in order, and never show a change as older than it is', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 300, size: 'max' }), gaps => {
      let spans: readonly TimeSpan[] = []
      const recorded: { readonly time: number; readonly sequence: number }[] = []
      let time = timeSpanMin
      gaps.forEach((gap, index) => {
        time += gap * timeSpanMs / 3
        recorded.push({ time, sequence: index + 1 })
        spans = withChange(spans, time, index + 1)
      })
      expect(spans.length).to.be.at.most(timeSpansMax)
      for (let i = 1; i < spans.length; i++) {
        expect(spans[i]!.begin > spans[i - 1]!.begin && spans[i]!.sequence > spans[i - 1]!.sequence).to.equal(true)
      }
      for (const { time: at, sequence } of recorded) {
        expect(sequenceBefore(spans, at, recorded.length)).to.be.below(sequence)
      }
      if (spans.length > 0) expect(sequenceBefore(spans, time + timeSpanMs, recorded.length)).to.equal(recorded.length)
    }), { numRuns: 200 })
  })

  it('are short when they are young, and stay few in thousands of years', () => {
    const year = 365 * 8 * timeSpanMs
    let spans: readonly TimeSpan[] = []
    for (let index = 0; index < 500; index++) spans = withChange(spans, timeSpanMin + index * 3 * timeSpanMs, index + 1)
    const lengths = spans.slice(1).map(({ begin }, index) => (begin - spans[index]!.begin) / timeSpanMs)
    expect(lengths.at(-1)).to.equal(3)
    expect(Math.max(...lengths)).to.be.within(8, 100)
    for (let index = 0; index < 100; index++) {
      spans = withChange(spans, timeSpanMin + (index + 1) * 20 * year, 501 + index)
      expect(spans.length).to.be.at.most(timeSpansMax)
    }
    expect([spans[0]!.sequence, spans.at(-1)!.sequence]).to.deep.equal([1, 600])
  })
})
