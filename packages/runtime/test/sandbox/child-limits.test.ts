import { expect } from 'chai'
import { defaultSandboxLimits } from '../../src/sandbox/sandbox.ts'
import { exceededLimit, type ChildMoment } from '../../src/sandbox/child-limits.ts'

const limits = { ...defaultSandboxLimits, childrenMax: 1, callMs: 1000, residentMiB: 100 }

function decide(
  state: ChildMoment['state'], ageMs: number, cpuMs: number | null = ageMs, residentMiB = 50, sleptMs = 0,
) {
  const usage = cpuMs === null ? null : { cpuMs, residentMiB }
  return exceededLimit({ state, ageMs, usage, cpuMs, sleptMs }, limits)
}

describe('the limits of a child process', () => {
  it('end a call after its time', () => {
    expect(decide('busy', 1000)).to.equal(null)
    expect(decide('busy', 1001)).to.equal('timeout')
  })

  it('leave a call four times the time while its process had less than half of it in CPU time', () => {
    expect(decide('busy', 1001, 499)).to.equal(null)
    expect(decide('busy', 1001, 500)).to.equal('timeout')
    expect(decide('busy', 4000, 499)).to.equal(null)
    expect(decide('busy', 4001, 0)).to.equal('timeout')
  })

  it('end a call after its time when its process has used no CPU time for two seconds', () => {
    expect(decide('busy', 2500, 100, 50, 2000)).to.equal(null)
    expect(decide('busy', 2500, 100, 50, 2001)).to.equal('timeout')
    expect(decide('busy', 1000, 100, 50, 2001)).to.equal(null)
    expect(decide('idle', 2500, 100, 50, 2001)).to.equal(null)
  })

  it('end a call that has used twice its time in CPU time, whatever its age', () => {
    expect(decide('busy', 10, 2000)).to.equal(null)
    expect(decide('busy', 10, 2001)).to.equal('timeout')
    expect(decide('idle', 10, 2001)).to.equal(null)
  })

  it('end a call after its time where the system does not report CPU time', () => {
    expect(decide('busy', 1000, null)).to.equal(null)
    expect(decide('busy', 1001, null)).to.equal('timeout')
  })

  it('end a call that uses too much memory', () => {
    expect(decide('busy', 10, 10, 100)).to.equal(null)
    expect(decide('busy', 10, 10, 101)).to.equal('memory')
  })

  it('replace an idle child that keeps half of the memory', () => {
    expect(decide('idle', 1e9, 1e9, 50)).to.equal(null)
    expect(decide('idle', 10, 10, 51)).to.equal('closed')
  })

  it('end a child that does not start', () => {
    expect(decide('starting', 15_000, 0, 1000)).to.equal(null)
    expect(decide('starting', 15_001, 0)).to.equal('timeout')
  })

  it('leave a child that was killed alone', () => {
    expect(decide('ending', 1e9, 1e9, 1000)).to.equal(null)
  })
})
