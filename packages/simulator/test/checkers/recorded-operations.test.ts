import { expect } from 'chai'
import type { FinalDatabase, FinalState } from '../../src/checkers/final-state.ts'
import { RecordedOperations } from '../../src/checkers/recorded-operations.ts'
import { checkHistory } from '../../src/history/index.ts'
import type { Rule } from '../../src/history/index.ts'
import type { Operation } from '../../src/workload/history.ts'

type Fields = Pick<Operation, 'kind'> & Partial<Operation>

const replicas = ['a', 'b', 'c'].map(node => ({ node }))
const created: Fields = { kind: 'write', parent: null, revision: '1-a', value: 'v0' }
const edited: Fields = { kind: 'write', value: 'v1', revision: '2-b' }

/** Operations on one document, one after the other, in a database that exists at the end. */
function state(operations: readonly Fields[], more: Partial<FinalState> = {}): FinalState {
  const record = { incarnation: 'one', revsLimit: 1000, shards: [{ replicas }] } as unknown as FinalDatabase['record']
  const history = operations.map((fields, number): Operation => ({
    number, client: 'c', node: 1, database: 'db', id: 'x', startMs: number * 10, endMs: number * 10 + 5, value: '',
    parent: '1-a', status: 201, outcome: 'done', conflict: false, databaseMissing: false, revision: undefined,
    readValue: undefined, removed: undefined, rows: undefined, incarnationBefore: 'one', incarnationAfter: 'one',
    activeBefore: 3, calm: true, calmMs: 1e6, ...fields,
  }))
  return {
    databases: new Map([['db', { record, replicas: [], documents: new Map() }]]), operations: history, lostDisks: 0,
    lossMs: Infinity, revsLimit: 1000, everCalm: false, ...more,
  }
}

function rules(operations: readonly Fields[], more: Partial<FinalState> = {}): Rule[] {
  return checkHistory(new RecordedOperations(state(operations, more)).history()).map(({ rule }) => rule)
}

describe('the recorded operations of a run', () => {
  it('exclude each other when they waited for a majority and no disk was lost', () => {
    const other: Fields = { kind: 'delete', revision: '2-c' }
    expect(rules([created, edited, other])).to.deep.equal(['one-success'])
    expect(rules([created, edited, { ...other, w: 1 }])).to.deep.equal([])
    expect(rules([created, edited, { ...other, outcome: 'accepted' }])).to.deep.equal([])
    expect(rules([created, edited, other], { lostDisks: 1, lossMs: 24 })).to.deep.equal([])
    expect(rules([created, edited, other], { lostDisks: 1, lossMs: 26 })).to.deep.equal(['one-success'])
    const purge: Fields = { kind: 'purge', outcome: 'unknown', paths: [] }
    expect(rules([created, edited, purge, other])).to.deep.equal([])
    expect(rules([created, edited, other, purge])).to.deep.equal(['one-success'])
  })

  it('may succeed again when the document went on for _revs_limit revisions', () => {
    const edits: Fields[] = [
      created, edited, { kind: 'write', parent: '5-e', revision: '6-f', value: 'v2' },
      { kind: 'write', revision: '2-c', value: 'v3' },
    ]
    expect(rules(edits, { revsLimit: 5 })).not.to.include('one-success')
    expect(rules(edits, { revsLimit: 6 })).to.include('one-success')
  })

  it('belong to every incarnation of the database in which they may have been carried out', () => {
    const uncertain: Fields = { ...edited, outcome: 'unknown', revision: undefined, incarnationAfter: undefined }
    const shown: Fields = { kind: 'read', revision: '2-b', readValue: 'v1' }
    const ofOther = { incarnationBefore: 'two', incarnationAfter: 'two' }
    expect(rules([created, { ...created, ...ofOther }, uncertain, shown, { ...shown, ...ofOther }])).to.deep.equal([])
    expect(rules([created, edited, shown, { ...shown, ...ofOther }])).to.deep.equal(['known-revisions'])
  })

  it('order local writes only when the first of them waited for a majority', () => {
    const [first, second]: Fields[] = [{ kind: 'local-write', value: 'l1' }, { kind: 'local-write', value: 'l2' }]
    const read: Fields = { kind: 'local-read', readValue: 'l1' }
    expect(rules([first!, second!, read], { restMs: 0 })).to.deep.equal(['local-documents'])
    expect(rules([{ ...first!, w: 2 }, second!, read], { restMs: 0 })).to.deep.equal(['local-documents'])
    expect(rules([{ ...first!, w: 1 }, second!, read], { restMs: 0 })).to.deep.equal([])
  })

  it('show in lists of local documents what was written, and at rest every document', () => {
    const written: Fields = { kind: 'local-write', value: 'l1' }
    const list: Fields = { kind: 'local-list', id: '', rows: [{ id: 'x', revision: '0-1', value: 'l1' }] }
    expect(rules([written, list], { restMs: 0 })).to.deep.equal([])
    expect(rules([{ ...written, value: 'l2' }, list])).to.deep.equal(['local-documents'])
    expect(rules([written, { ...list, rows: [] }])).to.deep.equal([])
    expect(rules([written, { ...list, rows: [] }], { restMs: 0 })).to.deep.equal(['local-documents'])
  })

  it('let reads be stale when they need not meet a replica that confirmed the edit', () => {
    const stale: Fields = { kind: 'read', revision: '1-a', readValue: 'v0' }
    expect(rules([created, edited, stale])).to.deep.equal(['fresh-reads'])
    expect(rules([created, edited, { ...stale, r: 1 }])).to.deep.equal([])
    expect(rules([created, { ...edited, w: 3 }, { ...stale, r: 1 }])).to.deep.equal(['fresh-reads'])
    expect(rules([created, edited, { ...stale, calm: false }])).to.deep.equal([])
  })

  it('let lists lack what was written within some seconds, and after a fault', () => {
    const list: Fields = { kind: 'list', id: '', rows: [] }
    expect(rules([created, list])).to.deep.equal([])
    expect(rules([created, { ...list, startMs: 60_000, endMs: 60_005 }])).to.deep.equal(['fresh-reads'])
    expect(rules([created, { ...list, startMs: 60_000, endMs: 60_005, calmMs: 40_000 }])).to.deep.equal([])
  })
})
