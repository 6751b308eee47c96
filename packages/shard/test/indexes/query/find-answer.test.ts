import { expect } from 'chai'
import { progressKeysMax, progressMsMax, type FindRequest, type FindRow, type FoundDocument } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryMachine, Turns } from '@sectional/runtime'
import { findInReplica } from '../../../src/indexes/find/document-find.ts'
import { FindAnswer } from '../../../src/indexes/find/find-answer.ts'
import { collect, context, edit } from '../../shard-world.ts'

const request: FindRequest =
  { selector: '{}', source: { kind: 'documents' }, descending: false, documents: 'winner' }

function match(id: string, bodyBytes = 1): FoundDocument {
  return {
    kind: 'found', range: 0, key: '', id, number: 0, value: new Uint8Array(0), revision: '1-a',
    body: new Uint8Array(bodyBytes),
  }
}

class WorkingClock extends ManualClock {
  workedMs = 0

  override monotonic(): number { return this.workedMs }
}

describe('the pages of an answer of find', () => {
  let clock: ManualClock
  beforeEach(() => { clock = new ManualClock() })
  const answerTo = (members: Partial<FindRequest> = {}): FindAnswer => new FindAnswer({ ...request, ...members }, clock)

  it('are due after a number of keys, of matches, of bytes, and after some time', async () => {
    const byKeys = answerTo()
    for (let at = 0; at < progressKeysMax; at++) {
      expect(byKeys.isPageDue).to.equal(false)
      byKeys.examined(match(`d${at}`), 1)
    }
    expect(byKeys.isPageDue).to.equal(true)
    const byMatches = answerTo()
    for (let at = 0; !byMatches.isPageDue; at++) byMatches.found(match(`d${at}`), 1)
    expect(byMatches.takePage()).to.have.length(129)
    expect(byMatches.isPageDue).to.equal(false)
    const byBytes = answerTo()
    byBytes.found(match('a', 2 ** 20), 1)
    expect(byBytes.isPageDue).to.equal(true)
    const byTime = answerTo()
    byTime.examined(match('a'), 1)
    await clock.advance(progressMsMax)
    expect(byTime.isPageDue).to.equal(true)
    byTime.takePage()
    expect(byTime.isPageDue).to.equal(false)
  })

  it('end with the progress since the page before, and are empty without any', () => {
    const answer = answerTo()
    answer.examined(match('a'), 0)
    answer.found(match('b'), 1)
    answer.examined(match('c'), 1)
    const place = { range: 0, key: '', id: 'c', number: 0 }
    expect(answer.takePage()).to.deep.equal([
      match('b'), { kind: 'progress', ...place, keysExamined: 3, documentsExamined: 2, matches: 1 },
    ])
    expect(answer.takePage()).to.deep.equal([])
    answer.examined(match('d'), 1)
    expect(answer.takePage()).to.deep.equal([
      { kind: 'progress', ...place, id: 'd', keysExamined: 1, documentsExamined: 1, matches: 0 },
    ])
  })

  it('are sent while a scan goes on, whose work is divided into turns', async () => {
    const replica = new MemoryShardReplica({ history: 'one' })
    const edits = Array.from({ length: 300 }, (_, at) => edit(`d${at}`, null, { at }))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    let turnsTaken = 0
    const working = new WorkingClock()
    const turns = new Turns(working)
    turns.due = () => true
    turns.next = async () => {
      turnsTaken++
      working.workedMs += 10
    }
    const parts = { replica, documents: replica, clock: working, turns, machine: new MemoryMachine(working) }
    const pages: (readonly FindRow[])[] = []
    const scan = { ...request, selector: '{"at":-1}' }
    for await (const page of findInReplica(parts, scan, { timeoutMs: 600_000 })) pages.push(page)
    expect(turnsTaken).to.equal(300)
    expect(pages.length).to.equal(300 * 10 / progressMsMax)
    expect(pages.flat().every(({ kind }) => kind === 'progress')).to.equal(true)
  })

  it('stop when the reader of a scan stops', async () => {
    const replica = new MemoryShardReplica({ history: 'one' })
    const edits = Array.from({ length: 300 }, (_, at) => edit(`d${at}`, null, { at }))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    let closed = 0
    const documents = {
      openDocument: replica.openDocument.bind(replica),
      async* scanDocuments(...call: Parameters<typeof replica.scanDocuments>) {
        try {
          yield* replica.scanDocuments(...call)
        } finally {
          closed++
        }
      },
    }
    const parts = { replica, documents, clock, turns: new Turns(clock), machine: new MemoryMachine(clock) }
    for await (const page of findInReplica(parts, request, { timeoutMs: 600_000 })) {
      expect(page.length).to.be.above(1)
      break
    }
    expect(closed).to.equal(1)
    expect(await collect(findInReplica(parts, { ...request, limit: 0 }, context))).to.deep.equal([])
  })
})
