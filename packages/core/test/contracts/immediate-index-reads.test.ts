import { expect } from 'chai'
import { type ImmediateIndexReads, scanTogether } from '../../src/index.ts'

describe('scans of the indexes of several shards from memory', () => {
  it('make each step for all shards before the next one, and give one answer for each', () => {
    const steps: string[] = []
    const index = (name: string): ImmediateIndexReads => ({
      beginScan: () => {
        steps.push(`begin ${name}`)
        return {
          locate: () => { steps.push(`locate ${name}`) },
          touch: () => { steps.push(`touch ${name}`) },
          answer: () => {
            steps.push(`answer ${name}`)
            return name as never
          },
        }
      },
      reduceIndex: () => undefined,
    })
    const unable: ImmediateIndexReads = { beginScan: () => undefined, reduceIndex: () => undefined }
    const request = { index: '', through: 0, ranges: [], descending: false } as const
    expect(scanTogether([index('a'), undefined, unable, index('b')], request))
      .to.deep.equal(['a', undefined, undefined, 'b'])
    expect(steps).to.deep.equal(['begin', 'locate', 'touch', 'answer'].flatMap(step => [`${step} a`, `${step} b`]))
  })
})
