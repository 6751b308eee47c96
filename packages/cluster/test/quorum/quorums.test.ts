import { expect } from 'chai'
import fc from 'fast-check'
import { readersToAsk, readQuorum, readVerdict, withAnswer, withFailure } from '../../src/quorum/read-quorum.ts'
import {
  jointWriteVerdict, withDurable, withFailedWrite, writeQuorum, writeVerdict,
} from '../../src/quorum/write-quorum.ts'
import { decision, decisionStep, withRefusal } from '../../src/quorum/decision.ts'

/** Returns the quorum after replies, which are given as text: `+` answered, `-` failed. */
function readAfter(active: number, reachable: number, r: number | undefined, replies: string) {
  return readVerdict([...replies].reduce(
    (quorum, reply) => reply === '+' ? withAnswer(quorum) : withFailure(quorum), readQuorum(active, reachable, r),
  ))
}

function writeAfter(active: number, w: number | undefined, replies: string) {
  return writeVerdict([...replies].reduce(
    (quorum, reply) => reply === '+' ? withDurable(quorum) : withFailedWrite(quorum), writeQuorum(active, w),
  ))
}

/** A naive implementation of the rules of docs/reference/README.md#quorums. */
function dumbVerdict(
  active: number, asked: number, wanted: number | undefined, replies: string,
): 'waiting' | 'met' | 'short' | 'failed' {
  let needed = wanted
  if (needed === undefined) for (needed = 1; needed * 2 <= active; needed++);
  if (needed < 1) needed = 1
  let good = 0
  for (const reply of replies) {
    if (reply === '+') good++
    if (good === needed) return 'met'
  }
  if (replies.length < asked) return 'waiting'
  return good === 0 ? 'failed' : 'short'
}

const replies = (most: number) => fc.array(fc.constantFrom('+', '-'), { maxLength: most }).map(list => list.join(''))

describe('read quorum', () => {
  it('waits for a majority of the active replicas by default', () => {
    const table = [
      ['', 'waiting'], ['+', 'waiting'], ['++', 'met'], ['+-', 'waiting'], ['+-+', 'met'], ['+--', 'degraded'],
      ['---', 'failed'], ['--', 'waiting'],
    ] as const
    for (const [given, verdict] of table) expect(readAfter(3, 3, undefined, given), given).to.equal(verdict)
  })

  it('treats r below 1 as 1, and never meets an r above the number of replicas', () => {
    expect(readAfter(3, 3, 0, '+')).to.equal('met')
    expect(readAfter(3, 3, -4, '+')).to.equal('met')
    expect(readAfter(3, 3, 4, '+++')).to.equal('degraded')
  })

  it('answers with the replies of the reachable replicas', () => {
    expect(readAfter(3, 1, undefined, '+')).to.equal('degraded')
    expect(readAfter(3, 0, undefined, '')).to.equal('failed')
  })

  it('agrees with a naive implementation of the rules', () => {
    const given = fc.record({
      active: fc.integer({ min: 1, max: 7 }), out: fc.nat(7),
      r: fc.option(fc.integer({ min: -2, max: 9 }), { nil: undefined }), cut: fc.nat(7), replies: replies(7),
    })
    fc.assert(fc.property(given, ({ active, out, r, cut, replies }) => {
      const reachable = Math.max(1, active - out)
      const heard = replies.slice(0, Math.min(cut, reachable))
      const expected = dumbVerdict(active, reachable, r, heard)
      expect(readAfter(active, reachable, r, heard)).to.equal(expected === 'short' ? 'degraded' : expected)
    }))
  })

  it('asks as many as it needs, and one more for each that failed or is late', () => {
    const quorum = readQuorum(3, 3, undefined)
    expect(readersToAsk(quorum, 0, 0)).to.equal(2)
    expect(readersToAsk(quorum, 2, 2)).to.equal(0)
    expect(readersToAsk(withFailure(quorum), 2, 1)).to.equal(1)
    expect(readersToAsk(withAnswer(quorum), 2, 0), 'one late').to.equal(1)
    expect(readersToAsk(withAnswer(quorum), 3, 0), 'nobody left').to.equal(0)
  })
})

describe('write quorum', () => {
  it('is met by w durable copies, and accepted with fewer only after all replied', () => {
    const table = [
      ['', 'waiting'], ['+', 'waiting'], ['++', 'met'], ['+-', 'waiting'], ['+--', 'accepted'], ['--+', 'accepted'],
      ['---', 'failed'], ['-++', 'met'],
    ] as const
    for (const [given, verdict] of table) expect(writeAfter(3, undefined, given), given).to.equal(verdict)
  })

  it('ends as accepted when w exceeds n', () => {
    expect(writeAfter(3, 4, '++')).to.equal('waiting')
    expect(writeAfter(3, 4, '+++')).to.equal('accepted')
  })

  it('is met during a change of the shard map when it is met by both maps', () => {
    const [met, waiting, failed] = [
      { ...writeQuorum(1, undefined), durable: 1 }, { ...writeQuorum(3, undefined), durable: 1 },
      { ...writeQuorum(2, undefined), failed: 2 },
    ]
    expect(jointWriteVerdict([met])).to.equal('met')
    expect(jointWriteVerdict([met, waiting])).to.equal('waiting')
    expect(jointWriteVerdict([met, { ...waiting, durable: 2 }])).to.equal('met')
    expect(jointWriteVerdict([met, { ...waiting, failed: 2 }])).to.equal('accepted')
    expect(jointWriteVerdict([met, failed])).to.equal('accepted')
    expect(jointWriteVerdict([failed, failed])).to.equal('failed')
  })

  it('treats w below 1 as 1', () => {
    expect(writeAfter(3, 0, '+')).to.equal('met')
    expect(writeAfter(3, -1, '+')).to.equal('met')
  })

  it('agrees with a naive implementation of the rules', () => {
    const quorum = fc.option(fc.integer({ min: -2, max: 9 }), { nil: undefined })
    fc.assert(fc.property(fc.integer({ min: 1, max: 7 }), quorum, replies(7), (active, w, given) => {
      const heard = given.slice(0, active)
      const expected = dumbVerdict(active, active, w, heard)
      expect(writeAfter(active, w, heard)).to.equal(expected === 'short' ? 'accepted' : expected)
    }))
  })
})

describe('decision', () => {
  /**
   * Returns the replicas in the order in which they are asked (`!`: after a refresh), when each behaves as its letter
   * says: `d` declines unless forced, `D` always declines, `f` fails, `o` decides.
   */
  function asked(behaviours: string, usual = true): string {
    const trace: string[] = []
    let state = decision(behaviours.length, usual)
    for (let step = decisionStep(state); ; step = decisionStep(state)) {
      if (step.kind === 'nobody') return `${trace.join(' ')} nobody`.trim()
      trace.push(`${step.replica}${step.refresh ? '!' : ''}`)
      const behaviour = behaviours[step.replica]
      if (behaviour === 'o' || (behaviour === 'd' && step.refresh)) return trace.join(' ')
      state = withRefusal(state, behaviour === 'f' ? 'failed' : 'declined')
    }
  }

  it('stays with the first that answers, refreshed when it is catching up', () => {
    expect(asked('ooo')).to.equal('0')
    expect(asked('doo')).to.equal('0 0!')
    expect(asked('ddd')).to.equal('0 0!')
    expect(asked('foo')).to.equal('0 1!')
    expect(asked('fdo')).to.equal('0 1!')
    expect(asked('Doo')).to.equal('0 0! 1!')
    expect(asked('ffo')).to.equal('0 1! 2!')
    expect(asked('fff')).to.equal('0 1! 2! nobody')
    expect(asked('')).to.equal('nobody')
  })

  it('lets only the first replica of the map decide without a refresh', () => {
    expect(asked('oo', false)).to.equal('0!')
    expect(asked('fo', false)).to.equal('0! 1!')
  })

  it('ends, and never asks a replica twice in the same way', () => {
    const behaviour = fc.constantFrom('d', 'D', 'f', 'o')
    fc.assert(fc.property(fc.array(behaviour, { maxLength: 7 }), fc.boolean(), (behaviours, usual) => {
      const trace = asked(behaviours.join(''), usual).split(' ')
      expect(new Set(trace).size).to.equal(trace.length)
    }))
  })
})
