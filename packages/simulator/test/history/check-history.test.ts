import { expect } from 'chai'
import { checkHistory, listReads } from '../../src/history/index.ts'
import type { Edit, Read, RecordedHistory, Rule } from '../../src/history/index.ts'
import { revisionOf, validHistory } from './valid-history.ts'

const first = revisionOf(null, 'a', false)
const second = revisionOf(first, 'b', false)

/** One document: #0 creates it, #1 edits it, #2 is a conflicting edit with the same content as #1. */
const [created, edited, late]: readonly Edit[] = [
  edit({ label: '#0', startMs: 0, parent: null, content: 'a', revision: first }),
  edit({ label: '#1', startMs: 10, parent: first, content: 'b', revision: second }),
  edit({ label: '#2', startMs: 20, parent: first, content: 'b', outcome: 'conflict' }),
]
const lastRead = read({ label: '#3', startMs: 30, revision: second, content: 'b', freshSinceMs: 30 })
const atRest = new Map([['db/x', { branches: [{ revisions: [second, first], deleted: false, content: 'b' }] }]])
const valid = history([created!, edited!, late!], [lastRead], { finals: atRest })

function edit(fields: Pick<Edit, 'label' | 'startMs' | 'parent' | 'content'> & Partial<Edit>): Edit {
  return {
    document: 'db/x', endMs: fields.startMs + 5, outcome: 'done', deleted: false, exclusive: true, kept: true,
    copies: 2, ...fields,
  }
}

function read(fields: Pick<Read, 'label' | 'startMs' | 'revision'> & Partial<Read>): Read {
  return { document: 'db/x', endMs: fields.startMs + 5, ...fields }
}

function history(
  edits: readonly Edit[], reads: readonly Read[] = [], more: Partial<RecordedHistory> = {},
): RecordedHistory {
  return { edits, reads, localWrites: [], localReads: [], ...more }
}

function rules(recorded: RecordedHistory): Rule[] {
  return [...new Set(checkHistory(recorded).map(({ rule }) => rule))].sort()
}

describe('the history checker', () => {
  it('accepts valid histories, with equal contents and overlapping requests', () => {
    expect(checkHistory(valid)).to.deep.equal([])
    for (let seed = 1; seed <= 50; seed++) expect(checkHistory(validHistory(seed)), `seed ${seed}`).to.deep.equal([])
  })

  it('reports the answer 201 to a second edit of one parent, also for equal content', () => {
    const both = { ...late!, outcome: 'done', revision: second } as const
    expect(rules(history([created!, edited!, both]))).to.deep.equal(['one-success'])
    expect(rules(history([created!, edited!, { ...both, outcome: 'accepted' }]))).to.deep.equal([])
    expect(rules(history([created!, edited!, { ...both, exclusive: false }]))).to.deep.equal([])
    const again = edit({ label: '#4', startMs: 40, parent: null, content: 'c', revision: revisionOf(null, 'c', false) })
    expect(rules(history([created!, edited!, again]))).to.deep.equal(['one-success'])
  })

  it('accepts several grafts of one parent', () => {
    const graft = (label: string, revision: string): Edit => edit({
      label, startMs: 40, parent: first, content: label, revision, grafted: true, ancestors: [first],
    })
    expect(rules(history([created!, edited!, graft('#4', '2-e'), graft('#5', '2-f')]))).to.deep.equal([])
  })

  it('reports an acknowledgement that names another revision', () => {
    const altered = { ...edited!, revision: revisionOf(first, 'c', false) }
    const unique = edit({
      label: '#4', startMs: 40, parent: first, content: 'b', outcome: 'accepted', revision: second,
    })
    expect(rules(history([created!, altered, unique]))).to.deep.equal(['same-revision'])
    expect(rules({ ...valid, edits: [created!, altered, late!] }))
      .to.deep.equal(['acknowledged-kept', 'known-revisions'])
    expect(rules(history([created!, { ...edited!, revision: '4-b' }]))).to.deep.equal(['same-revision'])
  })

  it('reports an edit that takes effect although it was refused', () => {
    const own = { ...late!, content: 'c' }
    const made = revisionOf(first, 'c', false)
    const shown = read({ label: '#4', startMs: 40, revision: made, content: 'c' })
    for (const outcome of ['conflict', 'refused'] as const) {
      expect(rules(history([created!, edited!, { ...own, outcome }], [shown]))).to.deep.equal(['conflicts-final'])
    }
    expect(rules(history([created!, edited!, { ...own, outcome: 'unknown' }], [shown]))).to.deep.equal([])
    const finals = new Map([['db/x', { branches: [
      { revisions: [second, first], deleted: false }, { revisions: ['3-d', made, first], deleted: false },
    ] }]])
    const later = edit({ label: '#5', startMs: 50, parent: made, content: 'd', outcome: 'accepted', revision: '3-d' })
    expect(rules(history([created!, edited!, own, later], [], { finals }))).to.deep.equal(['conflicts-final'])
  })

  it('does not blame a refused edit for the equal content of another one', () => {
    const repeated = { ...edited!, outcome: 'unknown', endMs: Infinity, revision: undefined } as const
    expect(rules(history([created!, repeated, late!], [lastRead]))).to.deep.equal([])
  })

  it('reports a lost write, but not one whose place in the tree was removed', () => {
    const tree = (...revisions: string[]): RecordedHistory =>
      ({ ...valid, reads: [], finals: new Map([['db/x', { branches: [{ revisions, deleted: false }] }]]) })
    expect(rules(tree(first))).to.deep.equal(['acknowledged-kept'])
    expect(rules({ ...valid, finals: new Map() })).to.deep.equal(['acknowledged-kept'])
    expect(rules(tree(second))).to.deep.equal([])
    expect(rules({ ...tree(first), edits: [created!, { ...edited!, kept: false }, late!] })).to.deep.equal([])
  })

  it('reports a conflict without a cause', () => {
    expect(rules(history([created!, { ...late!, startMs: 6, endMs: 9 }]))).to.deep.equal(['founded-conflicts'])
    expect(rules(history([created!, { ...late!, startMs: 6, endMs: 9 }, edited!]))).to.deep.equal(['founded-conflicts'])
    expect(rules(history([{ ...late!, parent: null }]))).to.deep.equal(['founded-conflicts'])
    const onOneReplica = { ...created!, exclusive: false, copies: 1 }
    expect(rules(history([onOneReplica, { ...late!, startMs: 6, endMs: 9 }]))).to.deep.equal([])
  })

  it('reports a revision, or a content, that no edit has made', () => {
    const shows = (fields: Partial<Read>): Rule[] => rules(history([created!, edited!], [{ ...lastRead, ...fields }]))
    expect(shows({ revision: '2-f', freshSinceMs: 0 })).to.deep.equal(['known-revisions'])
    expect(shows({ content: 'c' })).to.deep.equal(['known-revisions'])
    expect(shows({ document: 'db/y' })).to.deep.equal(['known-revisions'])
    expect(shows({ startMs: 1, endMs: 9 })).to.deep.equal(['known-revisions'])
  })

  it('reports a stale read, unless the read may be stale', () => {
    const stale = { ...lastRead, revision: first, content: 'a' }
    expect(rules(history([created!, edited!], [stale]))).to.deep.equal(['fresh-reads'])
    expect(rules(history([created!, edited!], [{ ...stale, freshSinceMs: 14 }]))).to.deep.equal([])
    expect(rules(history([created!, edited!], [{ ...stale, copiesMin: 3 }]))).to.deep.equal([])
    expect(rules(history([created!, { ...edited!, outcome: 'accepted' }], [stale]))).to.deep.equal([])
  })

  it('reports a list that misses a document, and one that shows a document that nobody wrote', () => {
    const list = (...rows: Pick<Read, 'document' | 'revision'>[]): Rule[] => rules(history([created!, edited!],
      listReads({ label: '#4', startMs: 40, endMs: 45, freshSinceMs: 40, rows }, ['db/x', 'db/y'])))
    expect(list({ document: 'db/x', revision: second })).to.deep.equal([])
    expect(list()).to.deep.equal(['fresh-reads'])
    expect(list({ document: 'db/x', revision: second }, { document: 'db/y', revision: second }))
      .to.deep.equal(['known-revisions'])
  })

  it('accepts that a document is missing which may have been deleted', () => {
    const gone = read({ label: '#5', startMs: 50, revision: null, freshSinceMs: 50 })
    const deletion = edit({
      label: '#4', startMs: 40, parent: second, content: '', deleted: true, outcome: 'unknown', endMs: Infinity,
    })
    expect(rules(history([created!, edited!, deletion], [gone]))).to.deep.equal([])
    expect(rules(history([created!, edited!, { ...deletion, startMs: 60 }], [gone]))).to.deep.equal(['fresh-reads'])
    expect(rules(history([created!, edited!, { ...deletion, parent: '2-f' }], [gone]))).to.deep.equal(['fresh-reads'])
  })

  it('reports a local document that shows a replaced or an invented content', () => {
    const document = 'db/_local/x'
    const written = (label: string, startMs: number, content: string | null): RecordedHistory['localWrites'][number] =>
      ({ label, document, startMs, endMs: startMs + 5, outcome: 'done', content })
    const shows = (content: string | null, writes: RecordedHistory['localWrites'], fresh = true): Rule[] => rules(
      history([], [], {
        localWrites: writes, localReads: [{ label: '#9', document, startMs: 90, endMs: 95, content, fresh }],
      }),
    )
    const [a, b] = [written('#0', 0, 'a'), written('#1', 10, 'b')]
    expect(shows('b', [a, b])).to.deep.equal([])
    expect(shows('a', [a, b])).to.deep.equal(['local-documents'])
    expect(shows(null, [a, b])).to.deep.equal(['local-documents'])
    expect(shows(null, [a, b, { ...written('#2', 20, null), outcome: 'unknown' }])).to.deep.equal([])
    expect(shows('a', [a, b], false)).to.deep.equal([])
    expect(shows('c', [a, b], false)).to.deep.equal(['local-documents'])
    expect(shows('a', [a, { ...b, startMs: 4 }])).to.deep.equal([])
    expect(shows('a', [a, b, written('#2', 20, 'a')])).to.deep.equal([])
  })

  it('catches alterations of random histories', () => {
    const caught = { swapped: 0, dropped: 0, resurrected: 0 }
    for (let seed = 1; seed <= 20; seed++) {
      const recorded = validHistory(seed)
      const [conflict] = recorded.edits.filter(({ outcome }) => outcome === 'conflict')
      const dropped = recorded.reads.findLast(({ revision }) => revision !== null)!
      const other = recorded.reads.find(({ document, revision }) => document !== dropped.document && revision !== null)!
      const rulesWith = (last: Partial<Read>): Rule[] => rules({
        ...recorded, reads: recorded.reads.map(each => each === dropped ? { ...each, ...last } : each),
      })
      if (rulesWith({ revision: '9-f', content: other.content! }).length > 0) caught.swapped++
      if (rulesWith({ revision: null }).length > 0) caught.dropped++
      const unique = { ...conflict!, content: 'unique' }
      const revision = revisionOf(conflict!.parent ?? null, 'unique', conflict!.deleted)
      const edits = recorded.edits.map(each => each === conflict ? unique : each)
      const shown = read({ label: 'shown', document: unique.document, startMs: 1e6, revision, content: 'unique' })
      const found = rules({ ...recorded, edits, reads: [...recorded.reads, shown] })
      if (found.includes('conflicts-final')) caught.resurrected++
    }
    expect(caught.swapped).to.equal(20)
    expect(caught.resurrected).to.equal(20)
    // Where a deletion may have taken effect, a missing document is no violation.
    expect(caught.dropped).to.be.greaterThan(10)
  })
})
