import { expect } from 'chai'
import { conflictsAreFinal, oneSuccess } from '../../src/checkers/edit-outcomes.ts'
import type { FinalDatabase, FinalState } from '../../src/checkers/final-state.ts'
import type { Operation } from '../../src/workload/history.ts'

type Fields = Pick<Operation, 'kind'> & Partial<Operation>

function state(operations: readonly Fields[], body = '{}', revsLimit = 1000): FinalState {
  const record = { incarnation: 'one', revsLimit } as unknown as FinalDatabase['record']
  const leaves = [{ revision: '2-b', deleted: false, body, attachments: [] }]
  const history = operations.map((fields, number): Operation => ({
    number, client: 'c', node: 1, database: 'db', id: 'x', startMs: number, endMs: number, value: '', parent: '1-a',
    status: 201, outcome: 'done', conflict: false,
    revision: '2-b', readValue: undefined, removed: undefined, incarnationBefore: 'one', incarnationAfter: 'one',
    activeBefore: 3, calm: true, ...fields,
  }))
  return {
    databases: new Map([['db', { record, replicas: [], documents: new Map([['x', { branches: [], leaves }]]) }]]),
    operations: history, lostDisks: 0, everCalm: false,
  }
}

describe('the checkers of the outcomes of edits', () => {
  it('report two successful edits of one revision, also equal ones', () => {
    expect(oneSuccess(state([{ kind: 'delete' }, { kind: 'delete' }]))).to.have.length(1)
    expect(oneSuccess(state([{ kind: 'write' }, { kind: 'write', parent: '2-b', revision: '3-c' }]))).to.deep.equal([])
    expect(oneSuccess(state([{ kind: 'write' }, { kind: 'write', outcome: 'accepted' }]))).to.deep.equal([])
    expect(oneSuccess(state([{ kind: 'write', w: 1 }, { kind: 'write' }]))).to.deep.equal([])
  })

  it('accept two successful edits of a revision when the document went on for _revs_limit revisions', () => {
    const edits = [
      { kind: 'write' }, { kind: 'write', parent: '5-e', revision: '6-f' },
      { kind: 'write', parent: '1-a', revision: '2-c' },
    ] as const
    expect(oneSuccess(state(edits, '{}', 5))).to.deep.equal([])
    expect(oneSuccess(state(edits, '{}', 6))).to.have.length(1)
  })

  it('report a conflict that took effect in a leaf or in a read', () => {
    const refused: Fields = {
      kind: 'write', status: 409, outcome: 'unknown', conflict: true, value: 'v1', revision: undefined,
    }
    expect(conflictsAreFinal(state([refused], '{"v":"v1"}'))).to.have.length(1)
    expect(conflictsAreFinal(state([refused, { kind: 'read', readValue: 'v1' }]))).to.have.length(1)
    expect(conflictsAreFinal(state([{ ...refused, conflict: false }], '{"v":"v1"}'))).to.deep.equal([])
    expect(conflictsAreFinal(state([refused], '{"v":"v2"}'))).to.deep.equal([])
  })
})
