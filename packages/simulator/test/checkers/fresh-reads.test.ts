import type { Branch, RevisionPath } from '@sectional/core'
import { expect } from 'chai'
import { freshReads } from '../../src/checkers/fresh-reads.ts'
import type { FinalDatabase, FinalState } from '../../src/checkers/final-state.ts'
import type { Operation } from '../../src/workload/history.ts'

type Fields = Pick<Operation, 'kind'> & Partial<Operation>

/**
 * Returns the findings for operations of one second each, one after the other, on a document that has the leaves
 * `leaves` at the end and no ancestors.
 */
function findings(leaves: readonly string[], operations: readonly Fields[]): readonly string[] {
  const record =
    { incarnation: 'one', revsLimit: 1, shards: [{ replicas: ['a', 'b', 'c'] }] } as unknown as FinalDatabase['record']
  const branches = leaves.map((leaf): Branch => ({
    path: path(leaf), deleted: false, available: [true], tombstones: [false],
  }))
  const final: FinalDatabase = { record, replicas: [], documents: new Map([['x', { branches, leaves: [] }]]) }
  const history = operations.map((fields, number): Operation => ({
    number, client: 'c', node: 1, database: 'db', id: 'x', startMs: number * 1000, endMs: number * 1000 + 999,
    value: '', parent: null, status: 0, outcome: 'done', conflict: false,
    revision: undefined, readValue: undefined, removed: undefined, incarnationBefore: 'one', incarnationAfter: 'one',
    activeBefore: 3, calm: true, ...fields,
  }))
  const state: FinalState = { databases: new Map([['db', final]]), operations: history, lostDisks: 0, everCalm: true }
  return freshReads(state)
}

function path(...revisions: readonly string[]): RevisionPath {
  return { start: Number(revisions[0]!.split('-')[0]), ids: revisions.map(revision => revision.split('-')[1]!) }
}

const edits: readonly Fields[] = [{ kind: 'write', revision: '1-a' }, { kind: 'write', parent: '1-a', revision: '2-b' }]

describe('the checker of fresh reads', () => {
  it('reports a write as missed when its document was not found', () => {
    expect(findings(['2-b'], [...edits, { kind: 'read' }])).to.have.length(1)
    expect(findings(['2-b'], [...edits, { kind: 'read', revision: '2-b' }])).to.deep.equal([])
  })

  it('accepts that a deleted descendant hides a write, although the tree no longer shows it', () => {
    const left = ['1-a', '3-c']
    for (const deletion of [
      { kind: 'delete', parent: '2-b', revision: '3-c' },
      { kind: 'delete', parent: '2-b', outcome: 'unknown' },
      { kind: 'graft', tombstone: true, paths: [path('3-c', '2-b')], revision: '3-c' },
    ] as const) expect(findings(left, [...edits, deletion, { kind: 'read' }])).to.deep.equal([])
  })

  it('learns the revision of a write without an answer from later reads', () => {
    const unsure: readonly Fields[] = [
      { kind: 'write', revision: '1-a' }, { kind: 'write', parent: '1-a', value: 'v', outcome: 'unknown' },
      { kind: 'read', revision: '2-b', readValue: 'v' },
    ]
    const deletion: Fields = { kind: 'delete', parent: '2-b', revision: '3-c' }
    expect(findings(['1-a', '3-c'], [...unsure, deletion, { kind: 'read' }])).to.deep.equal([])
  })

  it('does not accept a deletion of another branch, or one that began later or failed', () => {
    const left = ['1-a', '1-z']
    for (const later of [
      [{ kind: 'delete', parent: '1-z', revision: '2-y' }, { kind: 'read' }],
      [{ kind: 'read' }, { kind: 'delete', parent: '2-b', revision: '3-c' }],
      [{ kind: 'delete', parent: '2-b', outcome: 'failed' }, { kind: 'read' }],
      [{ kind: 'graft', paths: [path('3-c', '2-b')], revision: '3-c' }, { kind: 'read' }],
    ] as const) expect(findings(left, [...edits, ...later])).to.have.length(1)
  })
})
