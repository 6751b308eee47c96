import { expect } from 'chai'
import type { FinalState } from '../../src/checkers/final-state.ts'
import { optionsKept } from '../../src/checkers/options-kept.ts'
import type { Operation } from '../../src/workload/history.ts'

const unset = {
  name: 'db', incarnation: 'i', purgedInfosLimit: 1000, autoPurge: {},
  security: { members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } },
}

/** Changes of the limit, one after the other. */
function changes(...fields: readonly Partial<Operation>[]): Operation[] {
  return fields.map((each, number) => ({
    number, client: 'c', node: 1, kind: 'custom:purged-infos-limit', database: 'db', id: '', startMs: number * 10,
    endMs: number * 10 + 5, outcome: 'done', incarnationBefore: 'i', incarnationAfter: 'i', ...each,
  }) as unknown as Operation)
}

function findings(operations: readonly Operation[], record: Partial<typeof unset> = {}): readonly string[] {
  const databases = new Map([['db', { record: { ...unset, ...record } }]])
  return optionsKept({ databases, operations } as unknown as FinalState)
}

describe('the checker of options', () => {
  it('finds a value that was replaced, or that nobody has set', () => {
    const operations = changes({ value: '1' }, { value: '5' })
    expect(findings(operations, { purgedInfosLimit: 5 })).to.deep.equal([])
    expect(findings(operations, { purgedInfosLimit: 1 })).to.have.length(1)
    expect(findings(operations)).to.have.length(1)
    expect(findings([], { autoPurge: { deleted_document_ttl: '1_sec' } as {} })).to.have.length(1)
  })

  it('accepts every value that may have been set last', () => {
    expect(findings(changes({ value: '1' }, { value: '5', outcome: 'unknown' }), { purgedInfosLimit: 1 }))
      .to.deep.equal([])
    expect(findings(changes({ value: '1', outcome: 'unknown' }, { value: '5' }), { purgedInfosLimit: 1 }))
      .to.deep.equal([])
    expect(findings(changes({ value: '1', endMs: 20 }, { value: '5' }), { purgedInfosLimit: 1 })).to.deep.equal([])
    expect(findings(changes({ value: '1', outcome: 'failed' }), { purgedInfosLimit: 1 })).to.have.length(1)
  })

  it('judges only the database that exists', () => {
    const ofEarlier = { incarnationBefore: 'h', incarnationAfter: 'h' }
    expect(findings(changes({ value: '5', ...ofEarlier }))).to.deep.equal([])
    expect(findings(changes({ value: '5', ...ofEarlier }), { purgedInfosLimit: 5 })).to.have.length(1)
    expect(findings(changes({ value: '5', incarnationAfter: undefined }), { purgedInfosLimit: 5 })).to.deep.equal([])
  })
})
