import { expect } from 'chai'
import { Trace } from '../../src/world/trace.ts'

describe('Trace', () => {
  function hashOf(...lines: string[]): string {
    const trace = new Trace()
    for (const line of lines) trace.line(0, line)
    return trace.hash
  }

  it('has the same hash with and without the lines of stack traces', () => {
    const { stack } = new Error('no leader')
    expect(stack).to.contain('\n    at ')
    expect(hashOf(`failed: ${stack}`, 'end')).to.equal(hashOf('failed: Error: no leader', 'end'))
    expect(hashOf(`failed ${JSON.stringify({ stack })}`)).to.equal(hashOf('failed {"stack":"Error: no leader"}'))
  })

  it('has another hash after another line', () => {
    expect(hashOf('failed: Error: no leader')).not.to.equal(hashOf('failed: Error: no majority'))
  })
})
