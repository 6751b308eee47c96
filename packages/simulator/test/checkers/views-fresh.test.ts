import { expect } from 'chai'
import type { Branch } from '@sectional/core'
import type { FinalState } from '../../src/checkers/final-state.ts'
import { viewsFresh } from '../../src/checkers/views-fresh.ts'
import type { Operation } from '../../src/workload/history.ts'

const incarnation = 'i'

/** Returns an operation on the document `a` through node 1. */
function operation(fields: Partial<Operation>): Operation {
  return {
    number: 0, client: 'c1', node: 1, kind: 'write', database: 'db', id: 'a', startMs: 0, endMs: 10, value: 'v1',
    parent: null, status: 201, outcome: 'done', conflict: false, databaseMissing: false, revision: undefined,
    readValue: undefined, removed: undefined, rows: undefined, incarnationBefore: incarnation,
    incarnationAfter: incarnation, activeBefore: 3, calm: true, calmMs: 60_000, ...fields,
  }
}

const query = (fields: Partial<Operation>): Operation =>
  operation({ number: 9, kind: 'custom:query-own', status: 200, startMs: 100, endMs: 110, value: '', ...fields })

/** Returns the findings when the document has these revisions at the end, newest first. */
function findings(operations: readonly Operation[], revisions: readonly string[] = ['2-b', '1-a']): readonly string[] {
  const [newest = ''] = revisions
  const branch: Branch = {
    path: { start: Number(newest.split('-')[0]), ids: revisions.map(revision => revision.split('-')[1]!) },
    tombstones: revisions.map(() => false),
  } as unknown as Branch
  const final = {
    record: { incarnation }, replicas: [],
    documents: new Map([['a', { branches: revisions.length === 0 ? [] : [branch], leaves: [] }]]),
  }
  return viewsFresh({
    databases: new Map([['db', final]]), operations, lostDisks: 0, lossMs: Infinity, revsLimit: 1000, everCalm: true,
  } as unknown as FinalState)
}

describe('the checker of queries that must be fresh', () => {
  const first = operation({ number: 1, revision: '1-a' })
  const second = operation({ number: 2, revision: '2-b', parent: '1-a', value: 'v2', startMs: 20, endMs: 30 })

  it('finds a query that shows an old revision, or none, after the node had acknowledged a newer one', () => {
    expect(findings([first, second, query({ revision: '1-a' })])).to.have.length(1)
    expect(findings([first, second, query({ revision: undefined })])).to.have.length(1)
    expect(findings([first, second, query({ revision: '2-b' })])).to.deep.equal([])
  })

  it('counts writes below the quorum, and none whose outcome is unknown', () => {
    const below = { ...second, outcome: 'accepted' as const, status: 202 }
    expect(findings([first, below, query({ revision: '1-a' })])).to.have.length(1)
    const unknown = { ...second, outcome: 'unknown' as const, status: 503 }
    expect(findings([first, unknown, query({ revision: '1-a' })])).to.deep.equal([])
  })

  it('does not judge queries during faults, or those that failed', () => {
    expect(findings([first, second, query({ revision: '1-a', calm: false })])).to.deep.equal([])
    expect(findings([first, second, query({ revision: '1-a', outcome: 'unknown' })])).to.deep.equal([])
  })

  it('does not judge writes through other nodes, after the query began, or before the node may have started', () => {
    expect(findings([first, { ...second, node: 2 }, query({ revision: '1-a' })])).to.deep.equal([])
    expect(findings([first, { ...second, endMs: 105 }, query({ revision: '1-a' })])).to.deep.equal([])
    expect(findings([first, second, query({ revision: '1-a', startMs: 90_000, endMs: 90_010 })])).to.deep.equal([])
  })

  it('allows a query to show nothing after a deletion that may have been made', () => {
    const deletion = operation({
      number: 3, kind: 'delete', parent: '2-b', outcome: 'unknown', status: 503, startMs: 40, endMs: 50,
    })
    expect(findings([first, second, deletion, query({ revision: undefined })])).to.deep.equal([])
  })

  it('finds a purged revision that the query still shows, unless somebody may have written it again', () => {
    const purge = operation({ number: 3, kind: 'purge', removed: ['2-b'], value: '', startMs: 40, endMs: 50 })
    expect(findings([first, second, purge, query({ revision: '2-b' })], [])).to.have.length(1)
    expect(findings([first, second, purge, query({ revision: undefined })], [])).to.deep.equal([])
    const again = operation({ number: 4, parent: '1-a', outcome: 'unknown', status: 503, startMs: 60, endMs: 70 })
    expect(findings([first, second, purge, again, query({ revision: '2-b' })], [])).to.deep.equal([])
  })
})
